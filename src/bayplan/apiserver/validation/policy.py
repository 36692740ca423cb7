"""Validation rules of PodDisruptionBudgets, PriorityClasses, RuntimeClasses and Leases."""

from __future__ import annotations

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value
from bayplan.apiserver.validation.conditions import conditions
from bayplan.apiserver.validation.engine import (
    Causes,
    at_least,
    changed_metadata,
    choice,
    field,
    forbid_change,
    forbidden_if,
    immutable,
    inside,
    kind,
    need,
    number,
    one_of,
    optional,
    table,
)
from bayplan.apiserver.validation.formats import dns_label, int_or_percent, labels, nonnegative, not_above_100_percent
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.resources import container_resources
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR
from bayplan.apiserver.validation.tolerations import check_toleration
from bayplan.base.plain_data import Document, part, parts

_HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

# --- PodDisruptionBudget ----------------------------------------------------------------------------------------------


def _both_amounts(document: Document, path: str, out: Causes) -> None:
    if document.get("minAvailable") is not None and document.get("maxUnavailable") is not None:
        shown = shown_as("policy.PodDisruptionBudgetSpec")(document)
        out.append(invalid_value(path, shown, "minAvailable and maxUnavailable cannot be both set"))


BUDGET = kind(
    inside(
        "spec",
        _both_amounts,
        field("minAvailable", int_or_percent, not_above_100_percent),
        field("maxUnavailable", int_or_percent, not_above_100_percent),
        optional("selector", LABEL_SELECTOR),
        field("unhealthyPodEvictionPolicy", one_of("AlwaysAllow", "IfHealthyBudget")),
    ),
    metadata=(),
    status_metadata=(),
    status=[
        lambda new, _old, out: inside(
            "status",
            conditions,
            *(
                number(name, nonnegative)
                for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
            ),
        )(new, "", out)
    ],
)

# --- PriorityClass ----------------------------------------------------------------------------------------------------


def _system_problem(name: str, document: Document) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if document.get("value", 0) != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if document.get("globalDefault") else ""


def _priority(document: Document, path: str, out: Causes) -> None:
    name, found = str(part(document, "metadata").get("name") or ""), document.get("value", 0)
    if name.startswith("system-"):
        problem = _system_problem(name, document)
        if problem:
            detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
            out.append(forbidden_value("metadata.name", detail + problem))
    elif isinstance(found, int) and found > _HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        out.append(forbidden_value("value", detail))


PRIORITY_CLASS = kind(
    _priority,
    field("preemptionPolicy", choice("PreemptLowerPriority", "Never")),
    update=[forbid_change("value", "may not be changed in an update."), immutable("preemptionPolicy")],
)

# --- RuntimeClass -----------------------------------------------------------------------------------------------------


def _tolerations(document: Document, path: str, out: Causes) -> None:
    seen: set[tuple[object, ...]] = set()
    for index, toleration in enumerate(parts(document, "tolerations")):
        check_toleration(toleration, f"{path}.tolerations[{index}]", out)
    for index, toleration in enumerate(parts(document, "tolerations")):
        key = tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key in seen:
            shown = shown_as("core.Toleration")(toleration)
            out.append(duplicate(f"{path}.tolerations[{index}]", shown))
        seen.add(key)


def _overhead(document: Document, path: str, out: Causes) -> None:
    container_resources({"limits": document.get("podFixed") or {}}, path, out)


_COST_AND_PLACE = table(
    optional("overhead", _overhead), optional("scheduling", field("nodeSelector", labels), _tolerations)
)
RUNTIME_CLASS = kind(
    need("handler", dns_label),
    _COST_AND_PLACE,
    after=[changed_metadata(standard_finalizers=False), immutable("handler", zero="")],
    metadata=("object",),
)

# --- Lease ------------------------------------------------------------------------------------------------------------

_STRATEGIES = ("OldestEmulationVersion",)


def _strategy(found: object, path: str, out: Causes) -> None:
    if "/" not in str(found):
        one_of(*_STRATEGIES)(found, f"{path}.strategy", out)


LEASE = kind(
    inside(
        "spec",
        field("leaseDurationSeconds", at_least(1, "must be greater than 0")),
        field("leaseTransitions", nonnegative),
        field("strategy", _strategy),
        forbidden_if(
            lambda spec: bool(spec.get("preferredHolder")) and not spec.get("strategy"),
            "preferredHolder",
            "may only be specified if `strategy` is defined",
        ),
    )
)
KINDS = {
    "policy/poddisruptionbudgets": BUDGET,
    "scheduling.k8s.io/priorityclasses": PRIORITY_CLASS,
    "node.k8s.io/runtimeclasses": RUNTIME_CLASS,
    "coordination.k8s.io/leases": LEASE,
}
