"""Answer cases of the classic scheduler: its decision for each pod of a recorded case, in the recorded format.

The format and the procedure are described in `conformance/classic/README.md`: all nodes are examined, the first of the
best nodes by name is chosen, nothing is bound, assumed pods stay. Decisions come from the engine's own cycle. This
module computes what the recording program adds (every predicate alone, scores of a single feasible node).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from bayplan.base.errors import BayplanError
from bayplan.base.version import CLASSIC_KUBERNETES_VERSION
from bayplan.classic.algorithms import DEFAULT_PROVIDER
from bayplan.classic.assemble import DEFAULT_SCHEDULER_NAME, assemble_classic_scheduler, classic_profile
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.cycle import ClassicResult, priority_errors, schedule_pod
from bayplan.classic.gates import ClassicGates
from bayplan.classic.plugins.priority import RowPriority
from bayplan.classic.policy import policy_from_mapping
from bayplan.classic.scheduler import ClassicScheduler
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.cluster_objects import ClusterObjects, read_objects
from bayplan.engine.plan import Plan, score_over
from bayplan.engine.queued_pod import key_of, uid_of
from bayplan.engine.records import RecordLevel
from bayplan.engine.rule_result import RuleResults
from bayplan.engine.select_host import first_by_name, mask_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Handle
from bayplan.framework.profile import Profile
from bayplan.framework.status import ERROR_BIT
from bayplan.objects.pod import Pod


class ClassicRun:
    """One case: its scheduler, and the configured predicates that the scheduler never runs.

    Args:
        case: the decoded case.

    Raises:
        BayplanError: the configuration or an object is refused.
    """

    def __init__(self, case: JsonObject) -> None:
        self.scheduler: ClassicScheduler = assemble_classic_scheduler(
            configuration_of(case), pick=first_by_name, record_level=RecordLevel.OFF, sampling=False
        )
        self.state = self.scheduler.state
        _, self._never_asked = classic_profile(configuration_of(case), Handle(self.state, FeatureGates()))
        self.objects: ClusterObjects = read_objects(case)
        for item in self.objects.others:
            self.scheduler.handle(None, item, 0)
        for pod in self.objects.bound:
            self.scheduler.handle(None, pod, 0)
        for pod in self.objects.pending:
            self.scheduler.pods[key_of(pod)] = pod
        for pod in self.objects.pending:
            if pod.spec.scheduler_name == DEFAULT_SCHEDULER_NAME:
                self.scheduler.queue.nominator.add(pod)

    def cycles(self) -> list[JsonObject]:
        """Return the answers for all pods; each decision is applied before the next."""
        return [self._cycle(key) for key in self.objects.pods_to_schedule]

    def _cycle(self, key: str) -> JsonObject:
        pod = self.objects.as_given(self.scheduler.pods[key])
        answer = _empty(key)
        profile = self.scheduler.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            answer["message"] = f'not responsible for scheduler name "{pod.spec.scheduler_name}"'
            return answer
        if pod.metadata.deletion_timestamp is not None:
            answer["message"] = f"skip schedule deleting pod: {key}"
            return answer
        scheduler = self.scheduler
        plan = scheduler.plans.plan_for(profile, pod)
        cycle_state = CycleState()
        self._record_predicates(answer, plan, pod)
        result = schedule_pod(plan, pod, cycle_state, scheduler.nominated_pods, scheduler.settings)
        failure = result.common.failure
        if failure is not None and result.fit_error is None and result.common.scored_by is None:
            answer["message"] = failure.message
            return answer
        self._record_filter(answer, plan, result)
        if result.fit_error is not None:
            answer["message"] = result.fit_error.message()
            self._record_preemption(answer, pod, result)
            return answer
        if failure is not None:
            answer["message"] = failure.message
            return answer
        self._record_priorities(answer, plan, result)
        self._take_node(answer, profile, plan, pod, result, cycle_state)
        return answer

    # Predicates.

    def _record_predicates(self, answer: JsonObject, plan: Plan, pod: Pod) -> None:
        """Write the verdicts of every configured predicate alone on every node, without nominated pods."""
        if not self.state.nodes.row_of:
            return
        other = Plan(self._never_asked, pod, self.state, RuleResults(self.state))
        predicates: dict[str, Json] = {}
        for each in (plan, other):
            each.run_pre_filter_plugins(CycleState())
            each.refresh_filters()
            for number, part in enumerate(each.filtered.results):
                failed = [(row, int(part.values[row])) for row in self._alive() if part.values[row]]
                if failed:
                    predicates[part.name] = {
                        self._name(row): _recorded(each, number, verdict) for row, verdict in failed
                    }
        answer["predicates"] = predicates

    def _record_filter(self, answer: JsonObject, plan: Plan, result: ClassicResult) -> None:
        failing = result.failing
        filtered: dict[str, Json] = {}
        for row in self._alive():
            numbers = failing[:, row].nonzero()[0].tolist()
            if numbers:
                reasons = [
                    text for number in numbers for text in plan.explain(number, int(failing[number, row])).reasons
                ]
                filtered[self._name(row)] = list[Json](sorted(reasons))
        answer["filter"] = filtered
        answer["feasible"] = self._sorted_names(result.order.tolist())

    # Priorities.

    def _record_priorities(self, answer: JsonObject, plan: Plan, result: ClassicResult) -> None:
        rows = result.order.tolist()
        if priority_errors(plan, len(rows)) is not None:
            # A single node is chosen in spite of the error.
            answer["best"] = self._sorted_names(rows)
            return
        scored = score_over(plan, mask_of(result.order, self.state.nodes.capacity))
        total = scored.totals.total
        answer["priorities"] = {
            part.name.removesuffix(" (priority)"): {
                "weight": scored.totals.weights[number],
                "map": None if isinstance(part.plugin, RowPriority) else self._by_name(rows, part.values),
                "reduced": self._by_name(rows, scored.totals.normalized(number)),
            }
            for number, part in enumerate(scored.totals.results)
        }
        answer["total"] = self._by_name(rows, total)
        highest = max(int(total[row]) for row in rows)
        answer["best"] = self._sorted_names([row for row in rows if int(total[row]) == highest])
        if result.common.scored_by is plan and not np.array_equal(plan.totals.total, total):
            raise AssertionError("the cached totals of the plan differ from those of all nodes")

    def _take_node(
        self, answer: JsonObject, profile: Profile, plan: Plan, pod: Pod, result: ClassicResult, cycle_state: CycleState
    ) -> None:
        node_name = self._name(result.common.row)
        answer["chosen"] = node_name
        self.scheduler.assume(plan, pod, key_of(pod), result.common.row)
        for reserver in profile.reserve:
            reserver.reserve(cycle_state, pod, node_name)

    # Preemption.

    def _record_preemption(self, answer: JsonObject, pod: Pod, result: ClassicResult) -> None:
        """Write the result of preemption to the answer, and store the nomination as the recording program does."""
        scheduler = self.scheduler
        found = scheduler.find_preemption(pod, result)
        node = min((self._name(row) for row in found.best), default="")
        victims = found.candidates[self.state.nodes.row_of[node]].keys if node else ()
        cleared = scheduler.nominations_to_clear(pod, node, found)
        answer["preemption"] = {
            "node": node or None,
            "nodes": self._sorted_names(found.best),
            "victims": list[Json](victims),
            "nominatedToClear": list[Json](sorted(key_of(other) for other in cleared)),
            "candidates": {
                self._name(row): {"victims": list[Json](each.keys), "numPDBViolations": each.num_pdb_violations}
                for row, each in found.candidates.items()
            },
        }
        if node:
            # For other pods it is a nominated pod without a node, even if its spec names a node.
            scheduler.pods[key_of(pod)] = _nominated(scheduler.pods[key_of(pod)], node)
            scheduler.queue.nominator.add(scheduler.pods[key_of(pod)], node)
        for other in cleared:
            scheduler.pods[key_of(other)] = _nominated(other, "")
            scheduler.queue.nominator.remove(uid_of(other))

    # Names of rows.

    def _alive(self) -> list[int]:
        rows: list[int] = np.flatnonzero(self.state.nodes.alive).tolist()
        return rows

    def _name(self, row: int) -> str:
        return self.state.nodes.names[row] or ""

    def _sorted_names(self, rows: Sequence[int]) -> list[Json]:
        return list[Json](sorted(self._name(row) for row in rows))

    def _by_name(self, rows: Sequence[int], values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> JsonObject:
        return {self._name(row): int(values[row]) for row in rows}


def answer_classic_case(case: JsonObject) -> JsonObject:
    """Return Bayplan's answer to a classic case; an error if the case is invalid."""
    answer: JsonObject = {"id": case["id"], "kubernetes": CLASSIC_KUBERNETES_VERSION, "error": None, "cycles": None}
    try:
        run = ClassicRun(case)
    except BayplanError as problem:
        answer["error"] = str(problem)
        return answer
    answer["cycles"] = list[Json](run.cycles())
    return answer


def configuration_of(case: JsonObject) -> ClassicConfiguration:
    """Return the configuration of a case.

    Raises:
        ConfigurationError: the configuration is invalid.
    """
    gates, policy, provider = case.get("featureGates"), case.get("policy"), case.get("provider")
    values = {str(name): bool(on) for name, on in gates.items()} if isinstance(gates, dict) else {}
    return ClassicConfiguration(
        provider=str(provider) if provider else DEFAULT_PROVIDER,
        policy=policy_from_mapping(dict[str, object](policy)) if isinstance(policy, dict) else None,
        gates=ClassicGates.from_mapping(values),
    )


def _recorded(plan: Plan, number: int, verdict: int) -> JsonObject:
    reasons = plan.explain(number, verdict).reasons
    if verdict & ERROR_BIT:
        return {"fits": False, "reasons": [], "error": reasons[0]}
    return {"fits": False, "reasons": list[Json](sorted(reasons))}


def _nominated(pod: Pod, node_name: str) -> Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name=node_name))


def _empty(key: str) -> JsonObject:
    return {
        "pod": key,
        "predicates": {},
        "filter": {},
        "feasible": [],
        "priorities": {},
        "total": {},
        "best": [],
        "message": None,
        "preemption": None,
        "chosen": None,
    }
