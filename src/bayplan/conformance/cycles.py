"""Answer cycle cases: the engine's decision for each pod of a recorded case, in the recorded format.

The format and the procedure are described in `conformance/README.md` (cycles): all nodes are examined, the first of the
best nodes by name is chosen, nothing is bound, assumed pods stay. Decisions come from the engine's own cycle. This
module only computes what the recording program adds (every filter alone, scores of a single feasible node).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np
from msgspec import structs

from bayplan.base.errors import BayplanError
from bayplan.base.version import KUBERNETES_VERSION
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.cluster_objects import ClusterObjects, read_objects
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.cycle import absent_status, schedule_pod
from bayplan.engine.filtered_rows import PASSES
from bayplan.engine.plan import Plan, score_over
from bayplan.engine.queued_pod import key_of, uid_of
from bayplan.engine.records import RecordLevel
from bayplan.engine.rule_result import RuleResults
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import first_by_name
from bayplan.framework.configuration.loading import default_configuration, load_configuration
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.profile import Profile
from bayplan.framework.status import ERROR_BIT, Code, Status
from bayplan.objects.pod import Pod
from bayplan.objects.quantity import parse_quantity
from bayplan.objects.requests import repeats_overhead
from bayplan.plugins.default_preemption import DefaultPreemption
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.arrays import Bools, Ints


def answer_cycle_case(case: JsonObject) -> JsonObject:
    """Return Bayplan's answer to a cycle case; an error if upstream would reject the case."""
    answer: JsonObject = {"id": case["id"], "kubernetes": KUBERNETES_VERSION, "error": None, "cycles": None}
    try:
        scheduler, objects = make_scheduler(case)
    except BayplanError as problem:
        answer["error"] = str(problem)
        return answer
    answer["cycles"] = [run_cycle(scheduler, objects, key) for key in objects.pods_to_schedule]
    return answer


def make_scheduler(case: JsonObject, *, sampling: bool = False) -> tuple[Scheduler, ClusterObjects]:
    """Return a scheduler with the cluster of a case, and the objects of the case.

    Without `sampling`, the scheduler examines all nodes, regardless of the configuration.
    """
    gates = FeatureGates.from_mapping(_mapping_of_bools(case.get("featureGates")))
    registry = in_tree_registry()
    written = case.get("config")
    configuration = default_configuration(gates)
    if isinstance(written, dict):
        configuration = load_configuration(dict[str, object](written), feature_gates=gates)
    scheduler = assemble_scheduler(
        configuration,
        registry,
        feature_gates=gates,
        pick=first_by_name,
        record_level=RecordLevel.OFF,
        sampling=sampling,
    )
    _examine_all_candidates(scheduler, written)
    for found in scheduler.profiles.values():
        # The recording program also runs every filter alone, after its own call of PreFilter.
        found.count_request_sums(pre_filter_runs=1 if sampling else 2)
    objects = read_objects(case)
    for item in objects.others:
        scheduler.handle(None, item, 0)
    for pod in objects.bound:
        scheduler.handle(None, pod, 0)
    for pod in objects.pending:
        scheduler.pods[key_of(pod)] = pod
    for pod in objects.pending:
        profile = scheduler.profiles.get(pod.spec.scheduler_name)
        if pod.status.nominated_node_name and profile is not None and _pre_enqueue(profile, pod) is None:
            scheduler.queue.nominator.add(pod)
    return scheduler, objects


def run_cycle(scheduler: Scheduler, objects: ClusterObjects, key: str) -> JsonObject:
    """Run one pod's cycle, apply the decision as the recording program does, and return it in the recorded format."""
    pod = objects.as_given(scheduler.pods[key])
    answer = _empty(key)
    profile = scheduler.profiles.get(pod.spec.scheduler_name)
    if profile is None:
        answer["message"] = f'no profile for scheduler name "{pod.spec.scheduler_name}"'
        return answer
    held = _pre_enqueue(profile, pod)
    if held is not None:
        answer["preEnqueue"] = {"plugin": held.plugin, "code": held.code.text, "reasons": list(held.reasons)}
        return answer
    if pod.metadata.deletion_timestamp is not None:
        answer["message"] = f"skip schedule deleting pod: {key}"
        return answer
    _Cycle(scheduler, profile, pod, answer).record()
    return answer


class _Cycle:
    """One pod's cycle, whose results are written to an answer.

    Args:
        scheduler: the scheduler.
        profile: the profile of the pod.
        pod: the pod.
        answer: the answer, without results.
    """

    def __init__(self, scheduler: Scheduler, profile: Profile, pod: Pod, answer: JsonObject) -> None:
        self._scheduler = scheduler
        self._profile = profile
        self._pod = pod
        self._answer = answer
        self._plan = scheduler.plans.plan_for(profile, pod)
        self._state = CycleState()
        self._result = schedule_pod(self._plan, pod, self._state, scheduler.nominated_pods, first_by_name)

    def record(self) -> None:
        """Write the results of all extension points to the answer, and apply the decision."""
        answer, plan, result = self._answer, self._plan, self._result
        if not self._scheduler.state.nodes.row_of:
            answer["message"] = result.failure.message if result.failure is not None else None
            return
        if result.diagnosis is not None and result.diagnosis.absent_status is not None:
            # The recording program does not name the filter that rejected the nominated node here.
            result.diagnosis.absent_status = absent_status(plan)
        self._record_filters()
        if plan.pre.status is None and repeats_overhead(self._pod):
            answer["filterAll"] = _every_filter(self._plan_after_sums())
        failure = result.failure
        # An Error of a filter ends the cycle before scores, even if other nodes are feasible.
        if result.feasible_nodes and (failure is None or result.scored_by is not None):
            failure = self._record_scores() or failure
        if result.diagnosis is not None:
            self._record_preemption(result.diagnosis)
        elif failure is not None:
            answer["message"] = failure.message
        else:
            self._take_node()

    def _record_filters(self) -> None:
        answer, plan, pod, result = self._answer, self._plan, self._pod, self._result
        pre, names = plan.pre, plan.state.nodes.names
        status = pre.status or Status(Code.SUCCESS)
        node_names = list[Json](sorted(pre.node_names)) if pre.node_names is not None else None
        answer["preFilter"] = {
            "plugin": status.plugin,
            "code": status.code.text,
            "reasons": list(status.reasons),
            "nodeNames": None if pre.status is not None and pre.node_names else node_names,
        }
        answer["preFilterSkipped"] = list[Json](sorted(pre.skipped))
        if pod.status.nominated_node_name and pre.status is None:
            answer["nominated"] = {
                "node": pod.status.nominated_node_name,
                "feasible": result.row >= 0 and result.chose_nominated_node_alone,
            }
        if pre.status is not None:
            return
        answer["filterAll"] = _every_filter(plan)
        if result.chose_nominated_node_alone:
            answer["feasible"] = [pod.status.nominated_node_name]
            return
        failures = plan.filtered.first_failures()
        for row, failure in result.nominated_failures.items():
            failures[row] = failure
        examined = plan.filtered.examined()
        by_node: dict[str, Json] = {}
        alive = np.flatnonzero(plan.state.nodes.alive).tolist()
        for row in alive:
            failure = int(failures[row])
            if examined[row] and failure != PASSES:
                found = plan.filter_error(failure) if failure & ERROR_BIT else plan.status_of(failure)
                by_node[names[row] or ""] = {"plugin": found.plugin, **_recorded(found)}
        answer["filter"] = by_node
        answer["feasible"] = list[Json](
            sorted(names[row] or "" for row in alive if examined[row] and failures[row] == PASSES)
        )

    def _plan_after_sums(self) -> Plan:
        """Return a plan for a pod whose requests are as upstream leaves them after a PreFilter.

        The recording program runs every filter alone only after another PreFilter.
        """
        pod = self._pod
        sums = sum(plugin.sums_in_pre_filter for plugin in self._profile.pre_filter)
        requests: dict[str, str | int | float] = {}
        assert pod.spec.resources is not None
        for name, amount in pod.spec.resources.requests.items():
            quantity = parse_quantity(amount)
            if quantity.is_decimal:
                for _ in range(sums if name in pod.spec.overhead else 0):
                    quantity += parse_quantity(pod.spec.overhead[name])
                whole, nanos = divmod(quantity.as_nanos(), 10**9)
                amount = f"{whole}.{nanos:09d}"
            requests[name] = amount
        resources = structs.replace(pod.spec.resources, requests=requests)
        left = structs.replace(pod, spec=structs.replace(pod.spec, resources=resources))
        plan = self._scheduler.plans.plan_for(self._profile, left)
        plan.run_pre_filter_plugins(CycleState())
        plan.refresh_filters()
        return plan

    def _record_scores(self) -> Status | None:
        """Write the scores of the feasible nodes to the answer; return the Error that ended scoring, or None."""
        answer, plan = self._answer, self._plan
        names = plan.state.nodes.names
        feasible = _rows_of(plan, answer["feasible"])
        scored = score_over(plan, feasible)
        failure, prepared = scored.failure, scored.pre_scores.recorded_results()
        if all(code in (Code.SUCCESS, Code.SKIP) for _, code in prepared):
            # The recording program returns before it lists these names if a PreScore plugin fails.
            answer["preScoreSkipped"] = list[Json](sorted(name for name, code in prepared if code is Code.SKIP))
        if failure is not None and _has_failing_scorer(scored):
            scored = _score_before(failure.plugin, plan, feasible)
        totals = scored.totals
        rows = np.flatnonzero(feasible).tolist()
        answer["scores"] = {
            part.name: {
                "weight": totals.weights[number],
                "raw": {names[row] or "": int(part.values[row]) for row in rows},
                "normalized": {names[row] or "": int(totals.normalized(number)[row]) for row in rows},
            }
            for number, part in enumerate(totals.results)
        }
        if failure is None or totals.results:
            answer["total"] = {names[row] or "": int(totals.total[row]) for row in rows}
        if failure is not None:
            return failure
        highest = int(totals.total.max())
        answer["best"] = list[Json](sorted(names[row] or "" for row in rows if totals.total[row] == highest))
        self._check_cached_totals(totals.total)
        return None

    def _check_cached_totals(self, total: Ints) -> None:
        """Raise AssertionError if the plan's totals, which decide, differ from those of a plan without cached results."""
        plan, result = self._plan, self._result
        own = not any(plan.filtered.feasible[row] for row in result.nominated_failures)
        if result.scored_by is not None and own and not np.array_equal(plan.totals.total, total):
            raise AssertionError("the cached totals of the plan differ from those of all nodes")

    def _record_preemption(self, diagnosis: Diagnosis) -> None:
        """Run PostFilter, and write its result and the message to the answer.

        The nomination is stored as the recording program does.
        """
        profile, pod, scheduler, key = self._profile, self._pod, self._scheduler, key_of(self._pod)
        if profile.post_filter:
            candidates = self._candidates(diagnosis)
            found, status = scheduler.run_post_filter_plugins(profile, pod, diagnosis, self._state)
            names: list[str] = []
            if found is not None and found.nominated_node_name:
                found, names = self._first_of_all_starts(diagnosis, found)
            node = found.nominated_node_name if found is not None else None
            victims: list[Json] = list(found.victims) if found is not None else []
            preemption: JsonObject = {
                "code": status.code.text,
                "reasons": list(status.reasons),
                "nominatedNode": node or None,
                "nominatedNodes": list[Json](names),
                "victims": victims,
                "candidates": candidates,
            }
            self._answer["preemption"] = preemption
            if node is not None:
                scheduler.queue.nominator.add(scheduler.pods[key], node)
                scheduler.pods[key] = _nominated(scheduler.pods[key], node)
                if found is not None and found.clears_nominations:
                    for cleared in scheduler.lower_nominations(scheduler.pods[key], node):
                        scheduler.pods[cleared.key] = _nominated(cleared, "")
                        scheduler.queue.nominator.remove(uid_of(cleared))
        self._answer["message"] = diagnosis.message()

    def _candidates(self, diagnosis: Diagnosis) -> dict[str, Json]:
        """Return the result of a dry run on every node, by node, even if fewer candidates are enough for the plugin."""
        answers: dict[str, Json] = {}
        for plugin in self._profile.post_filter:
            if not isinstance(plugin, DefaultPreemption):
                continue
            evaluator = plugin.evaluator
            rows = evaluator.potential_nodes(diagnosis)
            if evaluator.why_not_eligible(self._pod, diagnosis) or not len(rows):
                continue
            names = plugin.handle.cluster.nodes.names
            found = evaluator.find_candidates(self._pod, self._state, rows, len(rows))
            for number, row in enumerate(found.rows.tolist()):
                answers[names[row] or ""] = {
                    "victims": [info.key for info in found.victims_at(number)],
                    "numPDBViolations": found.violations_at(number),
                }
        return answers

    def _first_of_all_starts(self, diagnosis: Diagnosis, found: PostFilterResult) -> tuple[PostFilterResult, list[str]]:
        """Return the first of all possible nominations by node name, and the names of all possible nodes, sorted.

        If upstream stops after some candidates, its choice depends on the node at which its search starts: try all of them.
        """
        plugin = next(each for each in self._profile.post_filter if isinstance(each, DefaultPreemption))
        results = [found]
        count = len(plugin.evaluator.potential_nodes(diagnosis))
        if plugin.evaluator.number_of_candidates(count) < count:
            starts = (
                plugin.evaluator.preempt(self._pod, diagnosis, self._state, offset=offset)[0] for offset in range(count)
            )
            results = [each for each in starts if each is not None and each.nominated_node_name]
            found = plugin.start(self._pod, min(results, key=lambda each: each.nominated_node_name or ""))
        names = plugin.handle.cluster.nodes.names
        shortlists = [each.shortlist for each in results if each.shortlist]
        best_rows = {row for shortlist in shortlists for row in shortlist.rows[shortlist.best()].tolist()}
        return found, sorted(names[row] or "" for row in best_rows)

    def _take_node(self) -> None:
        """Assume the pod on its node and run the Reserve plugins."""
        answer, scheduler, pod, cycle_state = self._answer, self._scheduler, self._pod, self._state
        reservers = self._profile.reserve
        node_name = scheduler.state.nodes.names[self._result.row] or ""
        answer["chosen"] = node_name
        scheduler.assume(self._plan, pod, key_of(pod), self._result.row)
        for reserver in reservers:
            status = reserver.reserve(cycle_state, pod, node_name)
            if not status.ok:
                answer["reserve"] = {"plugin": reserver.name, "code": status.code.text, "reasons": list(status.reasons)}
                for other in reversed(reservers):
                    other.unreserve(cycle_state, pod, node_name)
                scheduler.forget(key_of(pod))
                return
        reserved: dict[str, Json] = {}
        for reserver in reservers:
            for part, taken in reserver.reserved(cycle_state).items():
                if taken:
                    reserved[part] = _plain(taken)
        if reserved:
            answer["reserved"] = reserved


def _every_filter(plan: Plan) -> dict[str, Json]:
    """Return the verdicts of every filter, run alone on all nodes, for the nodes that it rejects."""
    names, alive = plan.state.nodes.names, np.flatnonzero(plan.state.nodes.alive).tolist()
    every: dict[str, Json] = {}
    for number, part in enumerate(plan.filtered.results):
        failed = [row for row in alive if part.values[row]]
        if failed:
            answers = {names[row] or "": _recorded(plan.explain(number, int(part.values[row]))) for row in failed}
            every[part.name] = dict[str, Json](answers)
    return every


def _has_failing_scorer(scored: Plan) -> bool:
    """Return whether Score itself returned an Error, in contrast to PreScore, or to an invalid score."""
    totals = scored.totals
    pairs = zip(totals.results, totals.rules.params, strict=True)
    return any(result.plugin.score_error(result.spec, params) for result, params in pairs)


def _score_before(failing: str, plan: Plan, feasible: Bools) -> Plan:
    """Return a new plan scored by the plugins before the failing one, whose scores the recording has."""
    profile, scorers = plan.profile, plan.profile.score
    profile.score = tuple(takewhile(lambda entry: entry.plugin.name != failing, scorers))
    try:
        return score_over(Plan(profile, plan.pod, plan.state, RuleResults(plan.state), plan.specs), feasible)
    finally:
        profile.score = scorers


def _examine_all_candidates(scheduler: Scheduler, written: Json) -> None:
    """Make DefaultPreemption examine every candidate, except in profiles for which the case sets its arguments."""
    given: set[str] = set()
    profiles: Json = written.get("profiles") if isinstance(written, dict) else None
    for profile in profiles if isinstance(profiles, list) else ():
        plugin_config = profile.get("pluginConfig") if isinstance(profile, dict) else None
        if isinstance(plugin_config, list) and any(
            isinstance(item, dict) and item.get("name") == DefaultPreemption.name for item in plugin_config
        ):
            assert isinstance(profile, dict)
            given.add(str(profile.get("schedulerName") or "default-scheduler"))
    for name, found in scheduler.profiles.items():
        for plugin in found.post_filter:
            if isinstance(plugin, DefaultPreemption) and name not in given:
                plugin.evaluator.arguments = structs.replace(
                    plugin.evaluator.arguments, min_candidate_nodes_percentage=100
                )


def _pre_enqueue(profile: Profile, pod: Pod) -> Status | None:
    for plugin in profile.pre_enqueue:
        status = plugin.pre_enqueue(pod)
        if not status.ok:
            return status.by(plugin.name)
    return None


def _nominated(pod: Pod, node_name: str) -> Pod:
    return structs.replace(pod, status=structs.replace(pod.status, nominated_node_name=node_name))


def _recorded(status: Status) -> dict[str, Json]:
    return {"code": status.code.text, "reasons": list[Json](sorted(status.reasons))}


def _rows_of(plan: Plan, names: Json) -> Bools:
    rows = np.zeros(plan.state.nodes.capacity, dtype=np.bool_)
    assert isinstance(names, list)
    rows[[plan.state.nodes.row_of[str(name)] for name in names]] = True
    return rows


def _empty(key: str) -> JsonObject:
    return {
        "pod": key,
        "preFilter": None,
        "preFilterSkipped": [],
        "filterAll": {},
        "filter": {},
        "feasible": [],
        "preScoreSkipped": [],
        "scores": {},
        "total": {},
        "best": [],
        "message": None,
        "preemption": None,
        "chosen": None,
    }


def _mapping_of_bools(value: Json) -> Mapping[str, bool]:
    return {str(name): bool(on) for name, on in value.items()} if isinstance(value, dict) else {}


def _plain(value: object) -> Json:
    """Return a value of mappings, sequences and scalars as JSON types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    raise TypeError(f"{value!r} is not plain")
