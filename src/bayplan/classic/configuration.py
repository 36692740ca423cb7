"""The configuration of a classic scheduler: a provider or a Policy, and the related flags of kube-scheduler 1.16."""

from __future__ import annotations

import msgspec

from bayplan.base.errors import ConfigurationError
from bayplan.classic.algorithms import DEFAULT_PROVIDER, Algorithms, AlgorithmTable
from bayplan.classic.arguments import DEFAULT_HARD_POD_AFFINITY_SYMMETRIC_WEIGHT, ClassicArguments
from bayplan.classic.gates import ClassicGates
from bayplan.classic.policy import Policy

DEFAULT_PERCENTAGE_OF_NODES_TO_SCORE = 50
MAX_TOTAL_PRIORITY = 2**63 - 1
MAX_PRIORITY = 10


class ClassicConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a classic scheduler.

    Attributes:
        provider: the algorithm provider; ignored if there is a Policy.
        policy: a Policy, or None.
        gates: the feature gates.
        disable_preemption: whether pods never preempt other pods.
        percentage_of_nodes_to_score: a search ends when this percentage of the nodes has been found feasible; 0: it
            depends on the number of nodes.
    """

    provider: str = DEFAULT_PROVIDER
    policy: Policy | None = None
    gates: ClassicGates = msgspec.field(default_factory=ClassicGates)
    disable_preemption: bool = False
    percentage_of_nodes_to_score: int = DEFAULT_PERCENTAGE_OF_NODES_TO_SCORE

    def algorithms(self) -> Algorithms:
        """Return the predicates and priorities.

        Raises:
            ConfigurationError: the configuration is invalid.
        """
        table = AlgorithmTable(self.gates)
        if self.policy is None:
            return table.of_provider(self.provider)
        try:
            return self._algorithms_of_policy(table, self.policy)
        except ConfigurationError as problem:
            raise ConfigurationError(
                problem.what, where=self.policy.where, got=problem.got, wanted=problem.wanted, hint=problem.hint
            ) from None

    def _algorithms_of_policy(self, table: AlgorithmTable, policy: Policy) -> Algorithms:
        found = table.of_policy(policy)
        weight = self.hard_pod_affinity_symmetric_weight
        if not 1 <= weight <= 100:
            text = f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"
            raise ConfigurationError(f"couldn't create scheduler from policy: {text}")
        total = 0
        for priority in found.priorities:
            total += priority.weight * MAX_PRIORITY
            if total > MAX_TOTAL_PRIORITY:
                text = "total priority of priority functions has overflown"
                raise ConfigurationError(f"couldn't create scheduler from policy: {text}")
        return found

    @property
    def always_check_all_predicates(self) -> bool:
        """Return whether all predicates run on a node and report their reasons, not just up to the first that fails."""
        return self.policy is not None and self.policy.always_check_all_predicates

    @property
    def hard_pod_affinity_symmetric_weight(self) -> int:
        """Return the weight of a running pod's required affinity term."""
        given = self.policy.hard_pod_affinity_symmetric_weight if self.policy is not None else 0
        return given or DEFAULT_HARD_POD_AFFINITY_SYMMETRIC_WEIGHT

    def arguments(self, algorithms: Algorithms) -> ClassicArguments:
        """Return the arguments that all rules share."""
        extenders = self.policy.extenders if self.policy is not None else ()
        ignored = [
            resource.name
            for extender in extenders
            for resource in extender.managed_resources
            if resource.ignored_by_scheduler
        ]
        return ClassicArguments(
            gates=self.gates,
            hard_pod_affinity_symmetric_weight=self.hard_pod_affinity_symmetric_weight,
            ignored_extended_resources=frozenset(ignored),
            predicates=frozenset(predicate.name for predicate in algorithms.predicates),
        )
