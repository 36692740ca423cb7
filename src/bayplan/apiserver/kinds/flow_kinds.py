"""The condition Dangling of FlowSchemas, which reports whether the referenced priority level is missing."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Cluster
from bayplan.base.plain_data import Document, part, parts

LEVELS = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations"
SCHEMAS = "flowcontrol.apiserver.k8s.io/flowschemas"
CONDITION_MANAGER = "api-priority-and-fairness-config-consumer-v1"
_BUILT_IN = frozenset(
    ("exempt", "catch-all", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default")
)
"""Priority levels that every kube-apiserver creates."""


def refresh_dangling(cluster: Cluster, schema: Document) -> bool:
    """Update the condition Dangling in a FlowSchema, and return whether it changed."""
    status = {**part(schema, "status")}
    conditions = parts(status, "conditions")
    wanted = dangling_condition(cluster, schema)
    for each in conditions:
        if each.get("type") == "Dangling" and each.get("message") == wanted["message"]:
            return False
    status["conditions"] = [*(each for each in conditions if each.get("type") != "Dangling"), wanted]
    schema["status"] = status
    return True


def dangling_condition(cluster: Cluster, schema: Document) -> Document:
    """Return the current condition Dangling of a FlowSchema."""
    name = str(part(schema, "spec", "priorityLevelConfiguration").get("name") or "")
    found = name in _BUILT_IN or cluster.find(LEVELS, "", name) is not None
    what = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}"'
    return {
        "type": "Dangling",
        "status": "False" if found else "True",
        "lastTransitionTime": cluster.now(),
        "reason": "Found" if found else "NotFound",
        "message": f"{what} and it exists" if found else f"{what} but there is no such object",
    }
