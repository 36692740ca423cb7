"""The arithmetic of rollouts: surge, unavailability, and the distribution of a change of scale among ReplicaSets.

Percentages of a surge are rounded up, and percentages of unavailable pods down, as upstream does. If both are zero, one
pod may be unavailable, or the rollout would never progress.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/ and pkg/controller/deployment/util
v1.36.3.
"""

from __future__ import annotations

import re

from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.objects.meta import IntOrString
from bayplan.objects.workloads import Deployment, ReplicaSet

DESIRED_REPLICAS_ANNOTATION = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS_ANNOTATION = "deployment.kubernetes.io/max-replicas"

_PERCENT = re.compile(r"([+-]?[0-9]+)%", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,10}", re.ASCII)


def scaled_value(value: IntOrString | None, total: int, *, round_up: bool) -> int:
    """Return a number unchanged, and a percentage as that share of the total; None is 0.

    Raises:
        InputError: the text is not a percentage.
    """
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    match = _PERCENT.fullmatch(value)
    if match is None:
        raise InputError("number or percentage", wanted="a number, or a percentage", got=repr(value), hint="'25%'")
    hundredfold = whole_number(match[1]) * total
    return -(-hundredfold // 100) if round_up else hundredfold // 100


def desired_replicas(deployment: Deployment) -> int:
    """Return the requested replicas of a Deployment; 1 by default."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def set_replicas(item: ReplicaSet) -> int:
    """Return the requested replicas of a ReplicaSet; 1 by default."""
    return 1 if item.spec.replicas is None else item.spec.replicas


def is_rolling_update(deployment: Deployment) -> bool:
    """Return whether a Deployment uses rolling updates (the default strategy)."""
    return deployment.spec.strategy.type in ("", "RollingUpdate")


def rollout_limits(deployment: Deployment) -> tuple[int, int]:
    """Return the maximum number of additional pods (surge) and of unavailable pods; (0, 0) for Recreate."""
    if not is_rolling_update(deployment):
        return 0, 0
    desired = desired_replicas(deployment)
    rolling = deployment.spec.strategy.rolling_update
    surge = scaled_value("25%" if rolling is None else rolling.max_surge, desired, round_up=True)
    unavailable = scaled_value("25%" if rolling is None else rolling.max_unavailable, desired, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, desired)


def new_set_size(deployment: Deployment, new_size: int, all_size: int) -> int:
    """Return the size to which the newest template's ReplicaSet may grow now.

    Args:
        deployment: the Deployment.
        new_size: the current size of that ReplicaSet.
        all_size: the total size of all ReplicaSets.
    """
    desired = desired_replicas(deployment)
    if not is_rolling_update(deployment):
        return desired
    rolling = deployment.spec.strategy.rolling_update
    surge = scaled_value("25%" if rolling is None else rolling.max_surge, desired, round_up=True)
    room = desired + surge - all_size
    return new_size + min(room, desired - new_size) if room > 0 else new_size


def share_scaling(deployment: Deployment, active: list[ReplicaSet]) -> dict[str, int]:
    """Return the new size of each active ReplicaSet, by name, when a Deployment is scaled in the middle of a rollout.

    The difference is distributed in proportion to size, larger sets first; the remainder from rounding is given to the
    largest.

    Args:
        deployment: the Deployment with the new number of replicas.
        active: its ReplicaSets with replicas.
    """
    desired = desired_replicas(deployment)
    surge, _ = rollout_limits(deployment)
    allowed = desired + surge if desired > 0 else 0
    to_add = allowed - sum(set_replicas(item) for item in active)
    # Of sets of equal size, newer sets grow first and older sets shrink first.
    by_age = sorted(active, key=_age, reverse=to_add > 0)
    ordered = sorted(by_age, key=lambda item: -set_replicas(item)) if to_add else active
    added = 0
    sizes: dict[str, int] = {}
    for item in ordered:
        share = _share(deployment, item, allowed, to_add, added) if to_add else 0
        sizes[item.metadata.name] = set_replicas(item) + share
        added += share
    if to_add and ordered:
        largest = ordered[0].metadata.name
        sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _share(deployment: Deployment, item: ReplicaSet, allowed: int, to_add: int, added: int) -> int:
    size = set_replicas(item)
    if size == 0 or to_add == added:
        return 0
    fraction = _fraction(deployment, item, size, allowed)
    return min(fraction, to_add - added) if to_add > 0 else max(fraction, to_add - added)


def _fraction(deployment: Deployment, item: ReplicaSet, size: int, allowed: int) -> int:
    """Return the change of a ReplicaSet's size that preserves its share of the total."""
    if desired_replicas(deployment) == 0:
        return -size
    before = read_count(item, MAX_REPLICAS_ANNOTATION) or deployment.status.replicas
    if before == 0:
        return 0
    # Floating point and rounding halves away from zero, like upstream.
    return int(size * allowed / before + 0.5) - size


def read_count(item: ReplicaSet, annotation: str) -> int | None:
    """Return the number in an annotation that a Deployment sets on its ReplicaSets, or None."""
    text = item.metadata.annotations.get(annotation, "")
    if not _COUNT.fullmatch(text):
        return None
    count = int(text)
    return count if count < 2**31 else None


def _age(item: ReplicaSet) -> tuple[str, str]:
    return item.metadata.creation_timestamp or "", item.metadata.name
