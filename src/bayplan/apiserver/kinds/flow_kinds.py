"""The condition Dangling of FlowSchemas, which reports whether the referenced priority level is missing."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Cluster
from bayplan.base.plain_data import Document, part, parts

LEVELS = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations"
SCHEMAS = "flowcontrol.apiserver.k8s.io/flowschemas"
CONDITION_MANAGER = "api-priority-and-fairness-config-consumer-v1"


def changed_condition(cluster: Cluster, schema: Document) -> Document | None:
    """Return the condition Dangling of a FlowSchema, or None if its status already has it."""
    wanted = dangling_condition(cluster, schema)
    for each in parts(part(schema, "status"), "conditions"):
        if each.get("type") == "Dangling" and each.get("message") == wanted["message"]:
            return None
    return wanted


def dangling_condition(cluster: Cluster, schema: Document) -> Document:
    """Return the current condition Dangling of a FlowSchema."""
    name = str(part(schema, "spec", "priorityLevelConfiguration").get("name") or "")
    found = cluster.find(LEVELS, "", name) is not None
    what = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}"'
    return {
        "type": "Dangling",
        "status": "False" if found else "True",
        "lastTransitionTime": cluster.now(),
        "reason": "Found" if found else "NotFound",
        "message": f"{what} and it exists" if found else f"{what} but there is no such object",
    }
