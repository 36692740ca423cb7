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
        hard_pod_affinity_symmetric_weight: the weight of a running pod's required affinity term.
        ignored_extended_resources: the extended resources that an extender manages and the predicates ignore.
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
