# SPDX-License-Identifier: Apache-2.0
"""What KWOK does with nodes and pods: the words that tests use, as KWOK stages.

A pod on a KWOK node does what its annotation drover.test/run says:

    succeed [TIME]                    all containers end with 0; the default for a pod of a Job
    fail [TIME [CODE [CONTAINER]]]    that container ends with CODE (1), and the pod is Failed
    oom [TIME [- [CONTAINER]]]        the same with 137 and the reason OOMKilled
    evict [TIME]                      the kubelet evicts it: Failed, Evicted, DisruptionTarget
    reject [TIME [REASON]]            the kubelet refuses it: Failed, REASON (OutOfcpu), nothing ran
    unpullable [TIME [REASON [CONT]]] waits with REASON (ImagePullBackOff) and never starts
    reboot [TIME [DOWN]]              the node goes down for DOWN (1s) and gets another bootID
    hang                              runs for ever; the default for other pods
    silent                            is bound and nothing happens, as if the kubelet were dead

TIME counts from the pod's start and is a Go duration (0s). CONTAINER is by default the one that
`kubectl logs` shows, else the last. drover.test/terminate is how long a deleted pod needs to go, a
duration, or "never". A node reboots when its annotation drover.test/reboot is not its bootID, and
then has it as bootID; drover.test/down is how long that takes.
"""

import json

RUN = "drover.test/run"
TERMINATE = "drover.test/terminate"
FROZEN = "drover.test/frozen"        # on a pod of a lost node: nothing happens to it
REBOOT = "drover.test/reboot"
WORK = "skyhook.nvidia.com/resource-id"
DOWN = "drover.test/down"
BEHAVIOUR = "drover-test-behaviour"  # the ConfigMap in kube-system that names runs; see policy.py
KWOK_LABEL = "drover.test/kwok"      # nodes with it are KWOK's; without it nobody plays them

WORDS = (f'((if .metadata.annotations["{FROZEN}"] then "frozen" else null end // '
         f'.metadata.annotations["{RUN}"] // (if any(.metadata.ownerReferences[]?; '
         '.kind == "Job") then "succeed" else "hang" end)) | split(" "))')
READY = '[.status.conditions[]? | select(.type == "Ready") | .status] | first // "Unknown"'
REBOOTING = (f'if (.metadata.annotations["{REBOOT}"] // .status.nodeInfo.bootID) != '
             '.status.nodeInfo.bootID then "yes" else "no" end')
TERMINAL = ["Succeeded", "Failed"]
FOR_EVER_MILLISECONDS = 24 * 60 * 60 * 1000

# The beginning of every template for pods: $words, and $target, the container that matters.
PREAMBLE = """
{{ $now := Now }}
{{ $notes := or .metadata.annotations dict }}
{{ $words := splitList " " (get $notes "%s") }}
{{ $target := get $notes "kubectl.kubernetes.io/default-container" }}
{{ if not $target }}{{ $target = (last .spec.containers).name }}{{ end }}
{{ if gt (len $words) 3 }}{{ $target = index $words 3 }}{{ end }}
{{ $third := "" }}
{{ if gt (len $words) 2 }}{{ $third = index $words 2 }}{{ end }}
{{ $started := or .status.startTime $now }}
""" % RUN
ENDED_WELL = """{terminated: {exitCode: 0, reason: Completed, startedAt: {{ $started | Quote }},
    finishedAt: {{ $now | Quote }}}}"""
ENDED_BADLY = """{terminated: {exitCode: %s, reason: %s, startedAt: {{ $started | Quote }},
    finishedAt: {{ $now | Quote }}}}"""
NOT_YET = "{waiting: {reason: PodInitializing}}"
RUNNING = "{running: {startedAt: {{ $now | Quote }}}}"
EXIT_CODE = '{{ or $third "1" }}'


def containers(target, before=ENDED_WELL, after=NOT_YET, beside=ENDED_WELL):
    """Statuses of all containers: init containers run in order, the others side by side."""
    def status(state, ready="false"):
        return ("- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: \"\", "
                f"restartCount: 0, ready: {ready}, state: {state}}}\n")
    in_order = ("{{ if eq .name $target }}{{ $passed = true }}\n" + status(target)
                + "{{ else if $passed }}\n" + status(after)
                + "{{ else }}\n" + status(before, "true") + "{{ end }}\n")
    together = ("{{ if $passed }}\n" + status(after)
                + "{{ else if eq .name $target }}\n" + status(target)
                + "{{ else }}\n" + status(beside) + "{{ end }}\n")
    return ("{{ $passed := false }}\n"
            "initContainerStatuses:\n{{ range .spec.initContainers }}\n" + in_order + "{{ end }}\n"
            "containerStatuses:\n{{ range .spec.containers }}\n" + together + "{{ end }}\n")


def condition(kind, status, reason=""):
    return (f"- {{type: {kind}, status: \"{status}\", reason: \"{reason}\", "
            "lastTransitionTime: {{ $now | Quote }}}\n")


def status_patch(template):
    return {"patch": {"subresource": "status", "root": "status", "template": template}}


def is_one_of(expression, values):
    return {"key": expression, "operator": "In", "values": values}


def stage(kind, name, match, steps, delay=None):
    spec = {"resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": match}, "steps": steps}
    if delay:
        spec["delay"] = delay
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name},
            "spec": spec}


def after(expression):
    return {"durationMilliseconds": 0, "durationFrom": {"expressionFrom": expression}}


ALIVE = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
DELETED = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}
NOT_STARTED = {"key": ".status.startTime", "operator": "DoesNotExist"}
STARTED = {"key": ".status.startTime", "operator": "Exists"}
UNFINISHED = {"key": ".status.phase", "operator": "NotIn", "values": TERMINAL}
RUNS = ["succeed", "fail", "oom", "evict", "reject", "reboot", "hang"]
AFTER_TIME = after(WORDS + '[1] // "0s"')


def pod_stage(outcome, template, steps=()):
    match = [ALIVE, STARTED, UNFINISHED, is_one_of(WORDS + "[0]", [outcome])]
    return stage("Pod", f"pod-{outcome}", match, [*steps, status_patch(PREAMBLE + template)],
                 AFTER_TIME)


def pod_start():
    """Init containers run while the phase is Pending, as on a kubelet."""
    template = PREAMBLE + containers(RUNNING, beside=RUNNING) + (
        "phase: {{ if $passed }}Pending{{ else }}Running{{ end }}\n"
        "startTime: {{ $now | Quote }}\n"
        "conditions:\n" + condition("Initialized", "True")
        + "{{ if not $passed }}\n" + condition("Ready", "True")
        + condition("ContainersReady", "True") + "{{ end }}\n")
    return stage("Pod", "pod-start", [ALIVE, NOT_STARTED, UNFINISHED,
                                      is_one_of(WORDS + "[0]", RUNS)], [status_patch(template)])


def pod_unpullable():
    """The first container waits, unless the annotation names another."""
    template = PREAMBLE + (
        "{{ if le (len $words) 3 }}\n"
        "{{ $target = (first (concat (or .spec.initContainers list) .spec.containers)).name }}\n"
        "{{ end }}\n") + containers(
        '{waiting: {reason: {{ or $third "ImagePullBackOff" }}, message: "Back-off pulling"}}',
        beside=RUNNING) + (
        "phase: Pending\nstartTime: {{ $now | Quote }}\nconditions:\n"
        + condition("Initialized", "False", "ContainersNotInitialized")
        + condition("Ready", "False", "ContainersNotReady"))
    return stage("Pod", "pod-unpullable", [ALIVE, NOT_STARTED, UNFINISHED,
                                           is_one_of(WORDS + "[0]", ["unpullable"])],
                 [status_patch(template)])


def pod_reboot():
    """The node is told first; the pod is found dead when the node is back. A node reboots once for
    each note in the ConfigMap, and so for each piece of work, as the agent's flag file sees to it
    on a real one."""
    down = '{{ $third | default "1s" }}'
    told = PREAMBLE + ("apiVersion: v1\nkind: Node\nmetadata:\n  name: {{ .spec.nodeName }}\n"
                       f"  annotations:\n    {REBOOT}: {{{{ .metadata.uid | Quote }}}}\n"
                       f"    {DOWN}: {down}\n")
    note = PREAMBLE + (f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {BEHAVIOUR}\n"
                       "  namespace: kube-system\n"
                       "data:\n  rebooted_{{ .spec.nodeName }}_{{ or (index (or .metadata.labels"
                       f' dict) "{WORK}") "" }}}}: {{{{ .metadata.uid | Quote }}}}\n')
    mark = (PREAMBLE + "conditions:\n" + condition("drover.test/NodeDown", "True"))
    goes_down = [ALIVE, STARTED, UNFINISHED, is_one_of(WORDS + "[0]", ["reboot"])]
    marked = ".status.conditions[]? | select(.type == \"drover.test/NodeDown\") | .status"
    dead = PREAMBLE + containers(ENDED_BADLY % (255, "Unknown")) + "phase: Failed\n"
    return [
        stage("Pod", "pod-reboot", [*goes_down, {"key": marked, "operator": "NotIn",
                                                 "values": ["True"]}],
              [{"apply": {"template": note, "type": "merge"}},
               {"apply": {"template": told, "type": "merge"}}, status_patch(mark)], AFTER_TIME),
        stage("Pod", "pod-rebooted", [*goes_down, is_one_of(marked, ["True"])],
              [status_patch(dead)], after(WORDS + '[2] // "1s"')),
    ]


def pod_delete():
    """A kubelet ends the containers, reports, and only then lets go of the pod."""
    ended = PREAMBLE + containers(ENDED_BADLY % (137, "Error")) + "phase: Failed\n"
    word = f'.metadata.annotations["{TERMINATE}"]'
    will_go = {"key": word, "operator": "NotIn", "values": ["never"]}
    delay = after(word + ' // "0s"')
    will_go = [will_go, {"key": WORDS + "[0]", "operator": "NotIn", "values": ["frozen"]}]
    return [
        stage("Pod", "pod-terminate", [DELETED, UNFINISHED, *will_go],
              [status_patch(ended), {"delete": True}], delay),
        stage("Pod", "pod-delete", [DELETED, is_one_of(".status.phase", TERMINAL), *will_go],
              [{"delete": True}]),
    ]


def pod_frozen():
    """What KWOK has begun to wait for it does even when the node is not its own any more, unless
    something else takes the place of that, and waits for longer."""
    return stage("Pod", "pod-frozen", [is_one_of(WORDS + "[0]", ["frozen"])],
                 [status_patch("phase: {{ .status.phase }}\n")],
                 {"durationMilliseconds": FOR_EVER_MILLISECONDS})


def pod_stages():
    failed = "phase: Failed\n"
    evicted = ("reason: Evicted\nmessage: \"The node was low on resource: memory.\"\n"
               "conditions:\n" + condition("DisruptionTarget", "True", "TerminationByKubelet"))
    return [
        pod_start(), pod_unpullable(), pod_frozen(),
        pod_stage("succeed", containers(ENDED_WELL, after=ENDED_WELL) + "phase: Succeeded\n"),
        pod_stage("fail", containers(ENDED_BADLY % (EXIT_CODE, "Error")) + failed),
        pod_stage("oom", containers(ENDED_BADLY % (137, "OOMKilled")) + failed),
        pod_stage("evict", containers(ENDED_BADLY % (137, "Error")) + failed + evicted),
        pod_stage("reject", "initContainerStatuses: []\ncontainerStatuses: []\n" + failed
                  + 'reason: {{ $third | default "OutOfcpu" }}\n'
                  'message: "Pod was rejected by the kubelet"\n'),
        *pod_reboot(), *pod_delete(),
    ]


def node_condition(status, reason, message):
    return ("{{ $now := Now }}\nconditions:\n"
            f"- {{type: Ready, status: \"{status}\", reason: {reason}, message: {message}, "
            "lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}\n")


def node_stages(heartbeat_seconds=0):
    ready = node_condition("True", "KubeletReady", "kubelet is posting ready status")
    down = node_condition("False", "KubeletNotReady", "node is shutting down")
    boot = f'nodeInfo:\n  bootID: {{{{ get .metadata.annotations "{REBOOT}" | Quote }}}}\n'
    unready = {"key": READY, "operator": "NotIn", "values": ["True"]}
    stages = [
        stage("Node", "node-ready", [is_one_of(REBOOTING, ["no"]), unready], [status_patch(ready)]),
        stage("Node", "node-down", [is_one_of(REBOOTING, ["yes"]), is_one_of(READY, ["True"])],
              [status_patch(down)]),
        stage("Node", "node-up", [is_one_of(REBOOTING, ["yes"]), unready],
              [status_patch(ready + boot)], after(f'.metadata.annotations["{DOWN}"] // "1s"')),
    ]
    if heartbeat_seconds:
        beat = ("{{ $now := Now }}\nconditions:\n"
                "- {type: Ready, status: \"True\", lastHeartbeatTime: {{ $now | Quote }}}\n")
        milliseconds = int(heartbeat_seconds * 1000)
        stages.append(stage("Node", "node-heartbeat",
                            [is_one_of(REBOOTING, ["no"]), is_one_of(READY, ["True"])],
                            [status_patch(beat)],
                            {"durationMilliseconds": milliseconds,
                             "jitterDurationMilliseconds": milliseconds + milliseconds // 10 + 1}))
    return stages


def configuration(heartbeat_seconds=0):
    """The text of a file for `kwok --config`. Leases are off: tests that are at rest are quiet."""
    options = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration",
               "metadata": {"name": "kwok"},
               "options": {"manageAllNodes": False, "manageNodesWithLabelSelector": KWOK_LABEL,
                           "nodeLeaseDurationSeconds": 0, "podPlayStageParallelism": 16,
                           "nodePlayStageParallelism": 16, "enableDebuggingHandlers": False}}
    documents = [options, *pod_stages(), *node_stages(heartbeat_seconds)]
    return "".join("---\n" + json.dumps(document, indent=1) + "\n" for document in documents)
