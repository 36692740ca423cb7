"""Taints of devices: which rules give them, which requests put up with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.objects.resource import DeviceTaint, DeviceTaintRule, DeviceToleration, ResourceSlice

PREVENTING = ("NoSchedule", "NoExecute")


def rule_taints(rules: Sequence[DeviceTaintRule], slice_: ResourceSlice, device: str) -> tuple[DeviceTaint, ...]:
    """Return the taints that rules give to a device of a slice. A rule without selector gives its own to all."""
    found = []
    spec = slice_.spec
    for rule in rules:
        selector = rule.spec.device_selector
        if selector is None or (
            selector.driver in (None, spec.driver)
            and selector.pool in (None, spec.pool.name)
            and selector.device in (None, device)
        ):
            found.append(rule.spec.taint)
    return tuple(found)


def keeps_away(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> bool:
    """Return whether some taint with an effect on scheduling is not tolerated."""
    return any(
        taint.effect in PREVENTING and not any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration covers a taint: empty effect and key cover all; the operator decides about the value."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
