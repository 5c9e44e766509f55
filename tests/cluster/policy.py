# SPDX-License-Identifier: Apache-2.0
"""How a test says what pods will do that it does not create itself, such as those of the operator.

The ConfigMap kube-system/drover-test-behaviour holds words of stages.py under keys made of the
labels skyhook.nvidia.com/package and skyhook.nvidia.com/stage and of the node's name. Of these keys
the first that is there counts, and an annotation on the pod itself goes before all of them:

    PACKAGE_STAGE_NODE, PACKAGE_STAGE, STAGE_NODE, PACKAGE, STAGE, NODE, default

A key rebooted_NODE_WORK, which KWOK writes, turns "reboot" into "succeed": a node reboots once for
what the label skyhook.nvidia.com/resource-id names. The API server itself adds the annotation, by
an admission policy.
"""

import stages

CEL_LABEL = ('has(object.metadata.labels) && "{0}" in object.metadata.labels ? '
             'string(object.metadata.labels["{0}"]) : ""')
VARIABLES = [
    ("name", CEL_LABEL.format("skyhook.nvidia.com/package")),
    ("stage", CEL_LABEL.format("skyhook.nvidia.com/stage")),
    ("node", 'has(object.spec.nodeName) ? string(object.spec.nodeName) : ""'),
    ("work", CEL_LABEL.format(stages.WORK)),
    ("data", "has(params.data) ? params.data : {}"),
    ("keys", '[variables.name + "_" + variables.stage + "_" + variables.node, '
             'variables.name + "_" + variables.stage, variables.stage + "_" + variables.node, '
             'variables.name, variables.stage, variables.node, "default"]'
             '.filter(key, key in variables.data)'),
    ("words", 'variables.keys.size() == 0 ? "" : string(variables.data[variables.keys[0]])'),
    ("rebooted", '("rebooted_" + variables.node + "_" + variables.work) in variables.data'),
    ("run", 'variables.words.startsWith("reboot") && variables.rebooted ? "succeed" : '
            'variables.words'),
]


def policy():
    notes = f'Object.metadata{{annotations: {{"{stages.RUN}": variables.run}}}}'
    return {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": stages.BEHAVIOUR},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"]}]},
            "variables": [{"name": name, "expression": text} for name, text in VARIABLES],
            "matchConditions": [{"name": "says-nothing-itself", "expression":
                                 f'!has(object.metadata.annotations) || '
                                 f'!("{stages.RUN}" in object.metadata.annotations)'}],
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {
                "expression": f'variables.run == "" ? Object{{}} : Object{{metadata: {notes}}}'}}],
        },
    }


def binding():
    return {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": stages.BEHAVIOUR},
        "spec": {"policyName": stages.BEHAVIOUR, "paramRef": {
            "name": stages.BEHAVIOUR, "namespace": "kube-system",
            "parameterNotFoundAction": "Allow"}},
    }


def behaviour(data=None):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": stages.BEHAVIOUR, "namespace": "kube-system"}, "data": data or {}}
