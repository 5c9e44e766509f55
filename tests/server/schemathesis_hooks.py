# SPDX-License-Identifier: Apache-2.0
"""Loaded by schemathesis: lets every second good request meet something that exists.

Names made at random are never there, so most operations would only be seen to answer 404."""

import schemathesis

REAL = {"deployment": "timed", "environment": "a", "resource": "a1", "number": 1}
NAMES = {"deployments": "timed", "environments": "a", "resources": "a1", "versions": "timed-1",
         "rolloutpolicies": "slow", "tokens": "nobody"}
CALLS = {}


def aims(case):
    """Whether this one is for something real: good requests in turn, by operation."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return False
    count = CALLS[case.operation.label] = CALLS.get(case.operation.label, 0) + 1
    return count % 2 == 0


def whole(value):
    """JSON Schema takes 1.0 for an integer. Drover does not, as Kubernetes does not."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@schemathesis.hook
def before_call(_, case, _kwargs):
    if isinstance(case.body, (dict, list)):
        case.body = whole(case.body)
    if not case.path_parameters or not aims(case):
        return
    plural = case.operation.path.split("/")[3]
    for name in case.path_parameters:
        if name in REAL and plural != "deployments":
            case.path_parameters[name] = REAL[name]
        elif name == "name":
            case.path_parameters[name] = NAMES[plural]
    if case.operation.method.upper() == "PUT" and isinstance(case.body, dict):
        named = case.body.get("metadata", {}).get("name", "")
        if case.operation.path.count("/") == 4 and named.replace("-", "").isalnum():
            case.path_parameters["name"] = named
