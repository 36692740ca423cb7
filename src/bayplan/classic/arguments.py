"""The arguments of the rules of a classic scheduler, in addition to the state: one value for all rules."""

from __future__ import annotations

import msgspec

from bayplan.classic.gates import ClassicGates
from bayplan.classic.policy import PolicyArgument

DEFAULT_HARD_POD_AFFINITY_SYMMETRIC_WEIGHT = 1


class ClassicArguments(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scheduler, and of one rule.

    Attributes:
        gates: the feature gates.
        hard_pod_affinity_symmetric_weight: what a required affinity term of a running pod weighs.
        ignored_extended_resources: extended resources that an extender manages and the predicates pass over.
        predicates: the names of all configured predicates.
        argument: what a Policy says about this rule alone.
    """

    gates: ClassicGates = msgspec.field(default_factory=ClassicGates)
    hard_pod_affinity_symmetric_weight: int = DEFAULT_HARD_POD_AFFINITY_SYMMETRIC_WEIGHT
    ignored_extended_resources: frozenset[str] = frozenset()
    predicates: frozenset[str] = frozenset()
    argument: PolicyArgument = msgspec.field(default_factory=PolicyArgument)


def classic_arguments(arguments: object) -> ClassicArguments:
    """Return the arguments of a rule; the defaults where it is made without."""
    return arguments if isinstance(arguments, ClassicArguments) else ClassicArguments()
