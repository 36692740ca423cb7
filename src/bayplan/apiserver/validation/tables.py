"""The validation rules of all kinds, by the table that stores their objects."""

from __future__ import annotations

from bayplan.apiserver.validation import (
    admission,
    apps,
    autoscaling,
    batch,
    core,
    definitions,
    devices,
    discovery,
    extension,
    flowcontrol,
    networking,
    persistent,
    pods,
    policy,
    rbac,
    services,
    slices,
    storage,
)
from bayplan.apiserver.validation.engine import KindRules, kind

_NO_RULES = kind()
_RULES: dict[str, KindRules] = {
    table: rules
    for module in (
        admission, apps, autoscaling, batch, core, definitions, devices, discovery, extension, flowcontrol, networking,
        persistent, pods, policy, rbac, services, slices, storage,
    )
    for table, rules in module.KINDS.items()
}  # fmt: skip


def rules_of(table: str) -> KindRules:
    """Return the rules of a table; kinds without special rules, such as custom resources, have none."""
    return _RULES.get(table, _NO_RULES)
