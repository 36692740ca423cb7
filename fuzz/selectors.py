"""Random label selectors, node selectors, taints and tolerations."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from fuzz.draws import APPS, HOSTNAME, NAMESPACES, REGION, TOPOLOGY_KEYS, ZONE, Draws

NODE_LABELS: dict[str, tuple[str, ...]] = {
    ZONE: ("z1", "z2", "z3"),
    REGION: ("r1", "r2"),
    "rack": ("1", "2", "3", "4"),
    "disk": ("ssd", "hdd", ""),
    "cores": ("2", "4", "8", "-3", "007", "many", "9223372036854775807"),
}
TAINT_KEYS = ("dedicated", "gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "level")
TAINT_VALUES = ("", "a", "b", "5", "10")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def pod_labels(draws: Draws) -> JsonObject:
    """Return the labels of a pod."""
    labels: JsonObject = {}
    if draws.chance(0.9):
        labels["app"] = draws.one(APPS)
    if draws.chance(0.4):
        labels["tier"] = draws.one(("front", "back"))
    if draws.chance(0.3):
        labels["version"] = draws.one(("1", "2", ""))
    return labels


def label_selector(draws: Draws) -> Json:
    """Return a selector of pods, sometimes one that selects all pods or none."""
    kind = draws.random()
    if kind < 0.06:
        return {}
    if kind < 0.10:
        return None
    selector: JsonObject = {}
    if kind < 0.7:
        selector["matchLabels"] = {"app": draws.one(APPS)}
    if kind > 0.55:
        selector["matchExpressions"] = [
            _requirement(draws, draws.one(("app", "tier", "version", "none")), ("a", "b", "front", "1", ""))
            for _ in range(draws.randint(1, 2))
        ]
    return selector


def namespace_selector(draws: Draws) -> Json:
    """Return a selector of namespaces."""
    if draws.chance(0.2):
        return {}
    if draws.chance(0.5):
        return {"matchLabels": {"team": draws.one(("x", "y"))}}
    keys, values = ("team", "kubernetes.io/metadata.name", "none"), ("x", "y", *NAMESPACES)
    return {"matchExpressions": [_requirement(draws, draws.one(keys), values)]}


def node_selector_term(draws: Draws) -> JsonObject:
    """Return a term of a node selector."""
    term: JsonObject = {}
    if draws.chance(0.9):
        term["matchExpressions"] = [_node_requirement(draws) for _ in range(draws.one((1, 1, 1, 2, 3)))]
    if draws.chance(0.15):
        names: list[Json] = [f"n{draws.randint(1, 9)}"]
        term["matchFields"] = [{"key": "metadata.name", "operator": draws.one(("In", "In", "NotIn")), "values": names}]
    return term


def _node_requirement(draws: Draws) -> JsonObject:
    key = draws.one((*NODE_LABELS, HOSTNAME, "missing"))
    if draws.chance(0.15):
        value = draws.one(("3", "4", "-10", "0"))
        if draws.has("odd", 0.3):
            value = draws.one(("x", "", "1.5", "99999999999999999999", "+4", "007"))
        return {"key": draws.one(("cores", "rack", key)), "operator": draws.one(("Gt", "Lt")), "values": [value]}
    values = NODE_LABELS.get(key, ("n1", "n2", "n3"))
    return _requirement(draws, key, values)


def _requirement(draws: Draws, key: str, values: tuple[str, ...]) -> JsonObject:
    operator = draws.one(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    requirement: JsonObject = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        requirement["values"] = list[Json](draws.some(values, 2, 1))
    if draws.has("odd", 0.03):
        requirement["values"] = list[Json](draws.one((("a", "a"), ("a",))))
    return requirement


def taints(draws: Draws) -> list[Json]:
    """Return the taints of a node, with distinct pairs of key and effect."""
    found: dict[tuple[str, str], Json] = {}
    for _ in range(draws.randint(1, 3)):
        key, effect = draws.one(TAINT_KEYS), draws.one(EFFECTS)
        taint: JsonObject = {"key": key, "effect": effect}
        if draws.chance(0.7):
            taint["value"] = draws.one(TAINT_VALUES)
        found[key, effect] = taint
    return list(found.values())


def tolerations(draws: Draws) -> list[Json]:
    """Return the tolerations of a pod."""
    found: list[Json] = []
    for _ in range(draws.randint(1, 3)):
        toleration: JsonObject = {}
        if draws.chance(0.9):
            toleration["key"] = draws.one(TAINT_KEYS)
        operators = ("Exists", "Equal", "Equal", "", "Lt", "Gt") if draws.has("odd") else ("Exists", "Equal", "")
        operator = draws.one(operators) if "key" in toleration else "Exists"
        if operator:
            toleration["operator"] = operator
        if operator != "Exists" and draws.chance(0.9):
            toleration["value"] = draws.one(TAINT_VALUES)
        if draws.chance(0.6):
            toleration["effect"] = draws.one(EFFECTS)
        if toleration.get("effect") == "NoExecute" and draws.chance(0.3):
            toleration["tolerationSeconds"] = 300
        found.append(toleration)
    return found


def pod_affinity_term(draws: Draws) -> JsonObject:
    """Return a term of pod affinity."""
    term: JsonObject = {"topologyKey": draws.one(TOPOLOGY_KEYS)}
    selector = label_selector(draws)
    if selector is not None:
        term["labelSelector"] = selector
    if draws.has("namespaces", 0.3):
        term["namespaces"] = list[Json](draws.some(NAMESPACES, 2, 1))
    if draws.has("namespaces", 0.3):
        term["namespaceSelector"] = namespace_selector(draws)
    if draws.chance(0.1) and selector is not None:
        term[draws.one(("matchLabelKeys", "mismatchLabelKeys"))] = [draws.one(("app", "version", "none"))]
    return term


def spread_constraint(draws: Draws) -> JsonObject:
    """Return a topology spread constraint."""
    when = draws.one(("DoNotSchedule", "ScheduleAnyway"))
    constraint: JsonObject = {
        "maxSkew": draws.one((1, 1, 2, 5)),
        "topologyKey": draws.one(TOPOLOGY_KEYS),
        "whenUnsatisfiable": when,
    }
    selector = label_selector(draws)
    if selector is not None:
        constraint["labelSelector"] = selector
    if when == "DoNotSchedule" and draws.chance(0.2):
        constraint["minDomains"] = draws.randint(1, 5)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draws.chance(0.25):
            constraint[policy] = draws.one(("Honor", "Ignore"))
    if draws.chance(0.15) and selector is not None:
        constraint["matchLabelKeys"] = list[Json](draws.some(("app", "version", "none"), 2, 1))
    return constraint
