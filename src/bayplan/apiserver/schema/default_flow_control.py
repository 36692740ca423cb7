"""The specs of the priority levels and FlowSchemas that every kube-apiserver creates when it starts.

Source: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/, and a kube-apiserver v1.36.3.
"""

from __future__ import annotations

from bayplan.base.plain_data import Document

_QUEUE_LENGTH = 50

_LIMITED_LEVELS = {
    "system": (30, 33, (64, 6)),
    "node-high": (40, 25, (64, 6)),
    "leader-election": (10, 0, (16, 4)),
    "workload-high": (40, 50, (128, 6)),
    "workload-low": (100, 90, (128, 6)),
    "global-default": (20, 50, (128, 6)),
    "catch-all": (5, 0, None),
}
"""Priority levels by name: shares, lendable percentage, and number of queues and hand size; None rejects requests."""

_ANY_RESOURCE: Document = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "clusterScope": True,
    "namespaces": ["*"],
}
_ANY_PATH: Document = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_PROBES: Document = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}
_LEASES: Document = {"verbs": ["*"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}
_NODES: Document = {**_ANY_RESOURCE, "apiGroups": [""], "resources": ["nodes", "nodes/status"]}
_ELECTIONS: Document = {**_LEASES, "verbs": ["get", "create", "update"]}


def _users(*names: str) -> list[Document]:
    return [{"kind": "User", "user": {"name": name}} for name in names]


def _groups(*names: str) -> list[Document]:
    return [{"kind": "Group", "group": {"name": name}} for name in names]


_EVERYBODY = _groups("system:unauthenticated", "system:authenticated")
_CONTROLLER_MANAGER, _SCHEDULER = "system:kube-controller-manager", "system:kube-scheduler"
_SYSTEM_ACCOUNTS: list[Document] = [
    {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}
]
_BY_USER, _BY_NAMESPACE = "ByUser", "ByNamespace"

_FLOWS: tuple[tuple[str, str, int, str, list[Document], list[Document], list[Document]], ...] = (
    ("exempt", "exempt", 1, "", _groups("system:masters"), [_ANY_RESOURCE], [_ANY_PATH]),
    ("probes", "exempt", 2, "", _EVERYBODY, [], [_PROBES]),
    (
        "system-leader-election",
        "leader-election",
        100,
        _BY_USER,
        _users(_CONTROLLER_MANAGER, _SCHEDULER) + _SYSTEM_ACCOUNTS,
        [_ELECTIONS],
        [],
    ),
    ("system-node-high", "node-high", 400, _BY_USER, _groups("system:nodes"), [_NODES, _LEASES], []),
    ("system-nodes", "system", 500, _BY_USER, _groups("system:nodes"), [_ANY_RESOURCE], [_ANY_PATH]),
    (
        "kube-controller-manager",
        "workload-high",
        800,
        _BY_NAMESPACE,
        _users(_CONTROLLER_MANAGER),
        [_ANY_RESOURCE],
        [_ANY_PATH],
    ),
    ("kube-scheduler", "workload-high", 800, _BY_NAMESPACE, _users(_SCHEDULER), [_ANY_RESOURCE], [_ANY_PATH]),
    (
        "kube-system-service-accounts",
        "workload-high",
        900,
        _BY_NAMESPACE,
        _SYSTEM_ACCOUNTS,
        [_ANY_RESOURCE],
        [_ANY_PATH],
    ),
    (
        "service-accounts",
        "workload-low",
        9000,
        _BY_USER,
        _groups("system:serviceaccounts"),
        [_ANY_RESOURCE],
        [_ANY_PATH],
    ),
    ("global-default", "global-default", 9900, _BY_USER, _EVERYBODY, [_ANY_RESOURCE], [_ANY_PATH]),
    ("catch-all", "catch-all", 10000, _BY_USER, _EVERYBODY, [_ANY_RESOURCE], [_ANY_PATH]),
)
"""FlowSchemas: name, priority level, matching precedence, distinguisher method, subjects, and the rules for resources
and for other paths.
"""


def _exempt_level() -> Document:
    return {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}


def _limited_level(shares: int, lendable: int, queuing: tuple[int, int] | None) -> Document:
    response: Document = {"type": "Reject"}
    if queuing is not None:
        queues, hand_size = queuing
        limits: Document = {"queues": queues, "handSize": hand_size, "queueLengthLimit": _QUEUE_LENGTH}
        response = {"type": "Queue", "queuing": limits}
    limited: Document = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return {"type": "Limited", "limited": limited}


def _flow(
    level: str,
    precedence: int,
    method: str,
    subjects: list[Document],
    resource_rules: list[Document],
    path_rules: list[Document],
) -> Document:
    rule: Document = {"subjects": subjects}
    if resource_rules:
        rule["resourceRules"] = resource_rules
    if path_rules:
        rule["nonResourceRules"] = path_rules
    spec: Document = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
    if method:
        spec["distinguisherMethod"] = {"type": method}
    return {**spec, "rules": [rule]}


LEVELS: dict[str, Document] = {
    "exempt": _exempt_level(),
    **{name: _limited_level(*numbers) for name, numbers in _LIMITED_LEVELS.items()},
}
"""Specs of PriorityLevelConfigurations by name."""

SCHEMAS: dict[str, Document] = {
    name: _flow(level, precedence, method, subjects, resource_rules, path_rules)
    for name, level, precedence, method, subjects, resource_rules, path_rules in _FLOWS
}
"""Specs of FlowSchemas by name."""

MANDATORY = frozenset(("exempt", "catch-all"))
"""Names of the objects of both kinds whose specs must not be changed, except the field `exempt` of priority levels."""
