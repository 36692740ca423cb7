"""The arguments of the classic scheduler's rules: one class for all rules."""

from __future__ import annotations

import msgspec

from bayplan.classic.gates import ClassicGates
from bayplan.classic.policy import PolicyArgument

DEFAULT_HARD_POD_AFFINITY_SYMMETRIC_WEIGHT = 1


class ClassicArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the scheduler, and the argument of one rule.

    Attributes:
        gates: the feature gates.
        hard_pod_affinity_symmetric_weight: the weight of a running pod's required affinity term.
        ignored_extended_resources: extended resources that an extender manages, and that predicates ignore.
        predicates: the names of all configured predicates.
        argument: the argument of this rule in a Policy.
    """

    gates: ClassicGates = msgspec.field(default_factory=ClassicGates)
    hard_pod_affinity_symmetric_weight: int = DEFAULT_HARD_POD_AFFINITY_SYMMETRIC_WEIGHT
    ignored_extended_resources: frozenset[str] = frozenset()
    predicates: frozenset[str] = frozenset()
    argument: PolicyArgument = msgspec.field(default_factory=PolicyArgument)


def classic_arguments(arguments: object) -> ClassicArguments:
    """Return the arguments of a rule, or the defaults."""
    return arguments if isinstance(arguments, ClassicArguments) else ClassicArguments()
