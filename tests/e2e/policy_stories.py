# SPDX-License-Identifier: Apache-2.0
"""DeploymentPolicy: compartments, budgets, strategies, stops and resets, one story each."""

import fleet
import rollout

KEEP = {"resetBatchStateOnCompletion": False}


def fixed(story):
    """fixed: the same size again and again; nobody is picked while a node is between packages"""
    story.add_nodes(5)
    story.policy({"percent": 100}, {"fixed": {"initialBatch": 2}}, **KEEP)
    story.skyhook({"fix": rollout.package(), "aft": rollout.package(dependsOn={"fix": "1.0.0"})},
                  deploymentPolicy=story.name)
    story.complete()
    assert story.batches() == [2, 2, 1], story.batches()
    for first, then in (((0, 1), (2, 3)), ((2, 3), (4,))):
        ended = max(job["status"]["completionTime"] for at in first
                    for job in story.jobs(node=story.nodes[at], package="aft-1.0.0"))
        begun = min(job["metadata"]["creationTimestamp"] for at in then
                    for job in story.jobs(node=story.nodes[at]))
        assert ended <= begun, (first, ended, then, begun)


def unless_told_otherwise(story):
    """without parameters: one node at a time, every failure makes a failed batch, and none stops
    the rollout"""
    story.add_nodes(4)
    story.behave(**{f"apply_{story.nodes[at]}": "fail" for at in (0, 1)})
    story.policy({"percent": 100}, {"fixed": {}}, **KEEP)
    story.skyhook("unl", deploymentPolicy=story.name)
    story.wait("the second failure is judged", lambda: story.batch().get("currentBatch") == 3)
    assert story.batch()["consecutiveFailures"] == 2 and story.batch()["lastBatchFailed"], \
        story.batch()
    story.wait("all were tried", lambda: story.batch().get("currentBatch") == 5)
    assert story.batches()[:4] == [1, 1, 1, 1] and not story.batch().get("shouldStop"), \
        story.batch()
    assert (story.batch()["completedNodes"], story.batch()["failedNodes"]) == (2, 2), story.batch()


def good_enough(story):
    """batchThreshold: a batch of which so many percent succeed is good, and the next one grows; one
    below is failed, and an exponential batch is divided"""
    story.add_nodes(14)
    story.behave(**{f"apply_{story.nodes[at]}": "fail" for at in (1, 3, 4, 5)})
    story.policy({"percent": 100}, {"exponential": {
        "initialBatch": 2, "growthFactor": 2, "batchThreshold": 50, "safetyLimit": 100}}, **KEEP)
    story.skyhook("goo", deploymentPolicy=story.name)
    # Of 2 one fails: half is enough. Of 4 three do: it is not.
    story.wait("the first batch is judged", lambda: story.batch().get("currentBatch") == 2)
    assert not story.batch().get("lastBatchFailed"), story.batch()
    story.wait("the second batch is judged", lambda: story.batch().get("currentBatch", 0) >= 3)
    story.wait("all were tried", lambda: sum(story.batches()) >= 14)
    assert story.batches()[:4] == [2, 4, 2, 4], story.batches()


def linear(story):
    """linear: one more each time, and from there on with the next version, since its policy says
    so"""
    story.add_nodes(6)
    story.policy({"percent": 100}, {"linear": {"initialBatch": 1, "delta": 1}}, **KEEP)
    story.skyhook("lin", deploymentPolicy=story.name)
    story.complete()
    assert story.batches() == [1, 2, 3], story.batches()
    story.edit("lin", {"version": "2.0.0"})
    story.complete()
    assert story.batches() == [1, 2, 3, 4, 2], story.batches()


def exponential(story):
    """exponential: twice as many each time, and never more than the budget"""
    story.add_nodes(9)
    story.policy({"count": 3}, {"exponential": {"initialBatch": 1, "growthFactor": 2}}, **KEEP)
    story.skyhook("exp", deploymentPolicy=story.name)
    story.complete()
    assert story.batches() == [1, 2, 3, 3], story.batches()
    assert story.check_limits(3) == 3


def slows_down(story):
    """a failed batch makes the next one smaller, before the safety limit"""
    story.add_nodes(8)
    story.behave(**{f"apply_{story.nodes[at]}": "fail" for at in (1, 2)})
    story.policy({"percent": 100}, {"linear": {"initialBatch": 3, "delta": 2, "safetyLimit": 100}},
                 **KEEP)
    story.skyhook("slow", deploymentPolicy=story.name)
    story.wait("three batches", lambda: story.batch().get("currentBatch", 0) >= 4)
    assert story.batches()[:3] == [3, 1, 3], story.batches()


def overlap(story):
    """a node that several compartments match is in the safest; one that none does in the default"""
    def labels(number):
        return [{"r": "west", "e": "prod", "p": "critical"}, {"r": "west", "e": "prod"},
                {"r": "west"}, {}][number]
    story.add_nodes(4, labels=labels)
    # Of the same strategy the smaller ceiling counts, and of the same ceiling the name.
    story.add_nodes(2, labels=lambda number: [
        {"t": "x", "u": "x"}, {"t": "x", "v": "x"}][number - 4])
    groups = [("us-west", {"r": "west"}, 20, {"exponential": {}}),
              ("production", {"e": "prod"}, 10, {"linear": {}}),
              ("critical", {"p": "critical"}, 3, {"fixed": {}}),
              ("wide", {"t": "x"}, 9, {"linear": {}}), ("narrow", {"u": "x"}, 8, {"linear": {}}),
              ("alike", {"v": "x"}, 9, {"linear": {}})]
    story.policy({"count": 2}, compartments=[
        {"name": name, "selector": {"matchLabels": chosen}, "budget": {"count": count},
         "strategy": strategy} for name, chosen, count, strategy in groups])
    story.skyhook("lap", deploymentPolicy=story.name)
    shown = story.complete()["compartmentStatuses"]
    assert {name: found["matched"] for name, found in shown.items()} == {
        "critical": 1, "production": 1, "us-west": 1, "__default__": 1, "wide": 0, "narrow": 1,
        "alike": 1}, shown
    assert shown["critical"]["ceiling"] == 3 and shown["us-west"]["ceiling"] == 20, shown


def percent(story):
    """percent rounds down, and is at least one, unless nobody is there"""
    story.add_nodes(10, labels=lambda number: {"half": "a" if number < 5 else "b"})
    story.policy({"percent": 100}, compartments=[
        {"name": "a", "selector": {"matchLabels": {"half": "a"}}, "budget": {"percent": 10}},
        {"name": "b", "selector": {"matchLabels": {"half": "b"}}, "budget": {"percent": 59}},
        {"name": "c", "selector": {"matchLabels": {"half": "c"}}, "budget": {"percent": 59}}])
    story.skyhook("per", deploymentPolicy=story.name)
    shown = story.complete()["compartmentStatuses"]
    assert [shown[name]["ceiling"] for name in "abc"] == [1, 2, 0], shown


def legacy(story):
    """interruptionBudget without a policy is one compartment"""
    story.add_nodes(8)
    story.skyhook("leg", interruptionBudget={"percent": 25})
    shown = story.complete()["compartmentStatuses"]
    assert list(shown) == ["__default__"] and shown["__default__"]["ceiling"] == 2, shown
    assert story.check_limits(2) == 2


def shared(story):
    """two Skyhooks with one policy have a budget each"""
    story.add_nodes(4)
    story.policy({"count": 1})
    for at, name in ((0, "one"), (1, "one"), (2, "two"), (3, "two")):
        story.api.patch("nodes", story.nodes[at], {"metadata": {"labels": {"half": name}}})
    story.behave(**{"sha-1.0.0": "succeed 3s"})
    names = [f"{story.name}-{half}" for half in ("one", "two")]
    for name, half in zip(names, ("one", "two")):
        story.skyhook("sha", name=name, deploymentPolicy=story.name,
                      nodeSelectors={"matchLabels": {"story": story.name, "half": half}})
    story.wait("both have one in flight", lambda: all(
        story.status(name).get("nodesInProgress") == 1 for name in names))
    for name in names:
        story.complete(name=name)


def stops_and_is_released_by_hand(story):
    """failureThreshold stops the rollout, and `deployment-policy reset` lets it go on"""
    story.add_nodes(6)
    story.behave(**{"stp-1.0.0": "fail"})
    story.policy({"percent": 100}, {"fixed": {"initialBatch": 2, "failureThreshold": 1}})
    story.skyhook("stp", deploymentPolicy=story.name)
    story.wait("it stops", lambda: story.batch().get("shouldStop"))
    assert story.batch()["failedNodes"] == 2, story.batch()
    state, text = story.explain(5)
    assert state == "waiting" and '"stopped"' in text, text
    assert len({job["spec"]["template"]["spec"]["nodeName"] for job in story.jobs()}) == 2
    story.behave(**{"stp-1.0.0": None})
    story.stage.plugin("deployment-policy", "reset", story.name, "--confirm")
    story.complete(180)


def stops_after_two_in_a_row(story):
    """failureThreshold counts failed batches in a row: one that is good begins the count anew"""
    story.add_nodes(6)
    story.behave(**{f"apply_{story.nodes[at]}": "fail" for at in (0, 2, 3)})
    story.policy({"percent": 100}, {"fixed": {"initialBatch": 1, "failureThreshold": 2,
                                              "safetyLimit": 100}}, **KEEP)
    story.skyhook("row", deploymentPolicy=story.name)
    story.wait("it stops", lambda: story.batch().get("shouldStop"))
    found = story.batch()
    assert (found["currentBatch"], found["consecutiveFailures"], found["completedNodes"],
            found["failedNodes"]) == (5, 2, 1, 3), found
    state, text = story.explain(4)
    assert state == "waiting" and '"stopped"' in text, text
    rollout.wait(12)  # after 10 s the failed ones would be tried again
    assert len(story.jobs(stage="apply")) == 4, "it went on"
    assert not story.jobs(node=story.nodes[4]) and not story.jobs(node=story.nodes[5])


def grows_after_the_safety_limit(story):
    """late failures make no batch smaller"""
    story.add_nodes(14)
    story.behave(**{f"apply_{story.nodes[at]}": "fail" for at in (2, 3, 4)})
    story.policy({"percent": 100}, {"linear": {"initialBatch": 2, "delta": 2, "safetyLimit": 10,
                                               "failureThreshold": 1}}, **KEEP)
    story.skyhook("gro", deploymentPolicy=story.name)
    story.wait("the second batch is judged", lambda: story.batch().get("currentBatch", 0) >= 3)
    story.wait("all were tried", lambda: sum(story.batches()) >= 14)
    assert story.batches() == [2, 4, 6, 2], story.batches()


def goes_on_after_the_safety_limit(story):
    """late failures stop nothing"""
    story.add_nodes(4)
    story.behave(**{f"apply_{story.nodes[at]}": "fail" for at in (2, 3)})
    story.policy({"percent": 100}, {"fixed": {"initialBatch": 1, "failureThreshold": 1,
                                              "safetyLimit": 50}}, **KEEP)
    story.skyhook("saf", deploymentPolicy=story.name)
    story.wait("all were tried", lambda: story.batch().get("currentBatch") == 5)
    assert not story.batch().get("shouldStop"), story.batch()
    assert (story.batch()["completedNodes"], story.batch()["failedNodes"]) == (2, 2), story.batch()


def starts_anew_with_a_version(story):
    """when a version changes in the middle, batch 1 begins with those who are in flight"""
    story.add_nodes(9)
    stuck = story.nodes[3]
    story.behave(**{f"nvw-1.0.0_config_{stuck}": "hang"})
    story.policy({"percent": 100}, {"exponential": {"initialBatch": 1, "growthFactor": 2}})
    story.skyhook("nvw", deploymentPolicy=story.name)
    story.wait("all but one of the third batch are done", lambda: story.status().get(
        "completeNodes") == "6/9")
    assert story.batch()["currentBatch"] == 3 and story.batch()["completedNodes"] == 3, \
        story.batch()
    story.edit("nvw", {"version": "2.0.0"})
    story.wait("batch 1", lambda: story.batch()["currentBatch"] == 1)
    assert story.batch()["members"] == [stuck] and not story.batch().get("completedNodes"), \
        story.batch()
    since = len(story.entries())
    job = story.jobs(node=stuck, stage="config")[0]["metadata"]["name"]
    story.behave(**{f"nvw-1.0.0_config_{stuck}": None})
    story.api.delete("jobs", job, rollout.SPACE)
    story.complete()
    found = story.batch_members(since=since)
    assert [len(batch) for batch in found] == [1, 1, 2, 4, 1] and found[0] == {stuck}, found


def starts_anew_by_itself(story):
    """when a rollout is complete batch 1 begins"""
    story.add_nodes(7)
    story.policy({"percent": 100}, {"exponential": {"initialBatch": 1, "growthFactor": 2}})
    story.skyhook("anw", deploymentPolicy=story.name)
    story.complete()
    story.wait("its batches are reset", lambda: story.batch() in (
        {"currentBatch": 1}, {"currentBatch": 1, "members": [], "retrying": []}))
    before = len(story.batches())
    story.edit("anw", {"version": "2.0.0"})
    story.complete()
    assert story.batches()[before] == 1, story.batches()


def goes_on_if_told(story):
    """with resetBatchStateOnCompletion: false of the Skyhook batches go on where they were"""
    story.add_nodes(7)
    story.policy({"percent": 100}, {"exponential": {"initialBatch": 1, "growthFactor": 2}})
    story.skyhook("gon", deploymentPolicy=story.name, deploymentPolicyOptions=KEEP)
    story.complete()
    assert story.batch()["currentBatch"] == 4, story.batch()
    story.edit("gon", {"version": "2.0.0"})
    story.complete()
    assert story.batches()[:4] == [1, 2, 4, 7], story.batches()


def skyhook_before_policy(story):
    """what the Skyhook says of resets counts before what its policy says"""
    story.add_nodes(3)
    story.policy({"percent": 100}, {"linear": {"initialBatch": 1}}, **KEEP)
    story.skyhook("sbp", deploymentPolicy=story.name,
                  deploymentPolicyOptions={"resetBatchStateOnCompletion": True})
    story.complete()
    story.wait("its batches are reset", lambda: story.batch().get("currentBatch") == 1)
    assert not story.batch().get("completedNodes"), story.batch()


def orders(story, version):
    """By node, of its last config stage."""
    found = {}
    for job in story.jobs(package=f"ord-{version}", stage="config"):
        pod = job["spec"]["template"]["spec"]
        env = {one["name"]: one.get("value") for one in pod["initContainers"][1]["env"]}
        found[pod["nodeName"]] = int(env["SKYHOOK_NODE_ORDER"])
    return found


def order(story):
    """SKYHOOK_NODE_ORDER is the place in the rollout, and begins at 0 after a reset"""
    story.add_nodes(5)
    story.policy({"percent": 100}, {"linear": {"initialBatch": 1}})
    story.skyhook("ord", deploymentPolicy=story.name)
    story.complete()
    found = orders(story, "1.0.0")
    assert [found[node] for node in story.nodes] == list(range(5)), found
    story.edit("ord", {"version": "2.0.0"})
    story.complete()
    found = orders(story, "2.0.0")
    assert sorted(found.values()) == list(range(5, 10)), found
    story.stage.plugin("reset", story.name, "--confirm")
    story.wait("all run again", lambda: len(story.jobs(package="ord-2.0.0", stage="config")) == 10)
    story.complete()
    found = orders(story, "2.0.0")
    assert sorted(found.values()) == list(range(5)), found


def waits_for_its_policy(story):
    """a policy that does not exist blocks, with that reason; when it comes all goes on"""
    story.add_nodes(2)
    story.skyhook("wai", deploymentPolicy=story.name)
    rollout.wait_status(story.cluster, story.name, "blocked")
    assert story.condition("DeploymentPolicyNotFound").get("status") == "True", story.status()
    assert '"policyNotFound"' in story.explain()[1]
    assert not story.jobs()
    story.policy({"count": 1})
    story.complete()


def failed_ones_keep_their_places(story):
    """failedNodesHoldBudget: as many failed nodes as there are places hold up all others, who are
    told so; failed ones are tried again all the same"""
    story.add_nodes(4)
    story.behave(**{f"apply_{story.nodes[at]}": "fail" for at in (0, 1)})
    story.policy({"count": 2}, {"fixed": {"initialBatch": 2}}, failedNodesHoldBudget=True)
    story.skyhook("kee", deploymentPolicy=story.name)
    story.wait("both have failed twice", lambda: all(
        len(story.jobs(node=node)) >= 2 for node in story.nodes[:2]))
    assert not story.jobs(node=story.nodes[2]) and not story.jobs(node=story.nodes[3])
    state, text = story.explain(2)
    assert state == "waiting" and all(node in text for node in story.nodes[:2]), text
    story.behave(**{f"apply_{story.nodes[at]}": None for at in (0, 1)})
    story.complete()
    assert story.check_limits(2) == 2


def failed_ones_out_of_service(story):
    """a bad package does not drain the fleet in turn: failed nodes that are held cordoned count
    against the budget, and those who wait for them are told so"""
    story.add_nodes(4)
    story.behave(**{"fos-1.0.0": "fail"})
    story.policy({"count": 2}, {"fixed": {"initialBatch": 2}})
    story.skyhook({"fos": rollout.package(interrupt={"type": "service", "services": ["a"]})},
                  deploymentPolicy=story.name)
    story.wait("both have failed twice", lambda: all(
        len(story.jobs(node=node)) >= 2 for node in story.nodes[:2]))
    assert [story.is_cordoned(at) for at in range(4)] == [True, True, False, False]
    assert not story.jobs(node=story.nodes[2]) and not story.jobs(node=story.nodes[3])
    state, text = story.explain(2)
    assert state == "waiting" and all(node in text for node in story.nodes[:2]), text
    story.behave(**{"fos-1.0.0": None})
    story.complete()
    assert not any(story.is_cordoned(at) for at in range(4))
    assert story.check_limits(2) == 2


def given_back_by_a_reset(story):
    """a reset forgets what was done and gives back what Drover had cordoned, also while paused;
    then all runs again"""
    story.add_nodes(1)
    story.behave(**{"giv-1.0.0": "fail"})
    story.skyhook({"giv": rollout.package(interrupt={"type": "service", "services": ["a"]})})
    story.wait("it errs, cordoned", lambda: story.note("status") == "erroring" and
               story.is_cordoned())
    story.stage.plugin("pause", story.name, "--confirm")
    rollout.wait_status(story.cluster, story.name, "paused")
    story.stage.plugin("reset", story.name, "--confirm")
    story.wait("it is given back", lambda: not story.is_cordoned())
    # The operator knows of it, too: it writes nothing of what it knew again.
    story.cluster.api.patch("nodes", story.nodes[0], {"metadata": {"labels": {"touched": "yes"}}})
    rollout.wait(2)
    assert not story.is_cordoned() and story.note("cordon") is None
    assert story.note("nodeState") in (None, "{}"), story.note("nodeState")
    story.behave(**{"giv-1.0.0": None})
    story.stage.plugin("resume", story.name, "--confirm")
    story.complete()
    assert not story.is_cordoned()


def paused(story):
    """pause starts nothing new and lets what runs end"""
    story.add_nodes(3)
    story.behave(**{"pau-1.0.0": "succeed 4s"})
    story.skyhook("pau", interruptionBudget={"count": 1})
    story.wait("one runs", lambda: story.jobs())
    story.stage.plugin("pause", story.name, "--confirm")
    rollout.wait_status(story.cluster, story.name, "paused")
    story.wait("its Job ends", lambda: story.jobs()[0]["status"].get("succeeded"))
    rollout.wait(2)
    assert len(story.jobs()) == 1, "another stage began"
    story.behave(**{"pau-1.0.0": None})
    story.stage.plugin("resume", story.name, "--confirm")
    story.complete()


NODES_SHOWN = 500  # in the status of a Skyhook


def more_nodes_than_are_shown(story):
    """of up to 500 nodes the status shows each; of more it shows none, and counts all"""
    story.add_nodes(1)
    story.skyhook("mor")
    assert story.nodes[0] in story.complete()["nodeState"]
    done = story.node()
    labels = {key: text for key, text in done["metadata"]["labels"].items()
              if key.startswith(rollout.PREFIX)}
    def twin(number):
        """A node where all is done as on the first."""
        node = fleet.node(f"{story.name}-{number:05d}", {**labels, "story": story.name})
        node["metadata"]["annotations"] = {
            key: text for key, text in done["metadata"]["annotations"].items()
            if key.startswith(rollout.PREFIX)}
        node["status"]["conditions"] += [
            one for one in done["status"]["conditions"] if one["type"].startswith(rollout.PREFIX)]
        story.api.create("nodes", node)
        story.nodes.append(node["metadata"]["name"])

    def shown():
        found = story.status()
        return (found["completeNodes"], *(len(found.get(key) or {}) for key in (
            "nodeState", "nodeStatus", "nodeBootIds")))
    for number in range(1, NODES_SHOWN):
        twin(number)
    story.wait("500 are shown", lambda: shown() == ("500/500", 500, 500, 500))
    twin(NODES_SHOWN)
    story.wait("501 are not", lambda: shown() == ("501/501", 0, 0, 0))
    story.api.delete("nodes", story.nodes[0])
    story.wait("500 are again", lambda: shown() == ("500/500", 500, 500, 500))
    assert len(story.jobs()) == 2, "something ran again"
    for node in story.nodes[1:]:  # nobody else has to do with them
        story.api.delete("nodes", node)


STORIES = [fixed, unless_told_otherwise, good_enough, linear, exponential, slows_down, overlap,
           percent, legacy, shared, stops_and_is_released_by_hand, stops_after_two_in_a_row,
           goes_on_after_the_safety_limit, grows_after_the_safety_limit, starts_anew_by_itself,
           starts_anew_with_a_version, goes_on_if_told, skyhook_before_policy, order,
           waits_for_its_policy, failed_ones_keep_their_places, failed_ones_out_of_service,
           given_back_by_a_reset, paused]


# ---- one with so many nodes that it goes alone

IN_TURN = [more_nodes_than_are_shown]
