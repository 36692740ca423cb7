"""Plans are found by identity or by bytes, are shared by pods that are equal to all plugins, and use limited memory."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from random import Random
from typing import ClassVar
from weakref import WeakSet

import numpy as np
import pytest
from msgspec.structs import replace

from bayplan.engine.plan import Plan
from bayplan.engine.plan_cache import BYTES_PER_PLAN, BYTES_PER_ROW, MAX_PROBATION, PlanCache
from bayplan.engine.rule_result import FilterResult, RuleResult, ScoreResult
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import FilterPlugin, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.objects.meta import OwnerReference
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import fit_requests
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing import PodBuilder, make_node, make_pod
from tests.engine.recorders import SECOND, make_scheduler


def make(*plugins: type[PerNodePlugin]) -> tuple[PlanCache, object]:
    scheduler = make_scheduler(*plugins, in_tree=("NodeResourcesFit",), nodes=("n1",))
    return scheduler.plans, scheduler.profiles["default-scheduler"]


def plan_of(cache: tuple[PlanCache, object], pod: Pod) -> Plan:
    plans, profile = cache
    return plans.plan_for(profile, pod)  # type: ignore[arg-type]


def plan_bytes(state: ClusterState) -> int:
    return BYTES_PER_PLAN + BYTES_PER_ROW * state.nodes.capacity


def pod(name: str = "p", cpu: str = "1") -> PodBuilder:
    return make_pod(name).req(cpu=cpu).label(app="a")


def owned(item: Pod, *owners: OwnerReference) -> Pod:
    return replace(item, metadata=replace(item.metadata, owner_references=owners))


SET = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="r", uid="1", controller=True)


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        pytest.param(pod("p").obj(), pod("q").obj(), True, id="the name does not matter"),
        pytest.param(pod().obj(), pod().annotation(a="b").obj(), True, id="annotations do not matter"),
        pytest.param(pod().obj(), pod().uid("x").nominated("n1").obj(), True, id="uid and status do not matter"),
        pytest.param(pod(cpu="1").obj(), pod(cpu="2").obj(), False, id="requests do"),
        pytest.param(pod().obj(), pod().label(app="b").obj(), False, id="labels do"),
        pytest.param(
            pod().obj(), make_pod("p", "other").req(cpu="1").label(app="a").obj(), False, id="the namespace does"
        ),
        pytest.param(pod().obj(), pod().priority(5).obj(), False, id="the priority does"),
        pytest.param(pod().obj(), owned(pod().obj(), SET), False, id="the controlling owner does"),
        pytest.param(
            owned(pod().obj(), SET),
            owned(pod().obj(), replace(SET, uid="2")),
            True,
            id="the owner's uid does not matter",
        ),
        pytest.param(
            pod().obj(),
            owned(pod().obj(), replace(SET, controller=None)),
            True,
            id="an owner that is not the controller does not matter",
        ),
    ],
)
def test_pods_share_a_plan_if_they_are_equal_for_all_plugins(left: Pod, right: Pod, want: bool) -> None:
    cache = make()
    shared = plan_of(cache, left) is plan_of(cache, right)
    assert (shared and not cache[0].adapted) is want


def test_a_pod_gets_the_plan_of_an_equal_earlier_pod() -> None:
    cache = make()
    first, second = pod("p").obj(), pod("q").obj()
    plans = [plan_of(cache, first) for _ in range(2)]
    assert plan_of(cache, second) is plans[-1]
    others = (pod(cpu="2").obj(), pod().label(app="b").obj(), make_pod("p", "other").req(cpu="1").label(app="a").obj())
    for other in (*others, pod().priority(5).obj(), owned(pod().obj(), SET)):
        for _ in range(2):
            found = plan_of(cache, other)
            assert found is not plans[-1]
        assert plan_of(cache, other) is found
        assert plan_of(cache, second) is plans[-1]


def test_lookup_by_identity_and_by_bytes_finds_the_same_plan() -> None:
    cache = make()
    template = pod().obj()
    twins = [replace(template, metadata=replace(template.metadata, name=f"t{number}")) for number in range(4)]
    apart = [pod(f"a{number}").obj() for number in range(4)]
    mixed = [item for pair in zip(twins, apart, strict=True) for item in pair]
    assert len({id(plan_of(cache, item)) for item in (*twins, *apart, *mixed, *reversed(mixed))}) == 1


def test_pods_with_one_spec_but_different_metadata_get_different_plans() -> None:
    cache = make()
    template = pod().obj()
    other = replace(template, metadata=replace(template.metadata, labels={"app": "b"}))
    elsewhere = replace(template, metadata=replace(template.metadata, namespace="other"))
    mine = owned(template, SET)
    for _ in range(3):
        plans = [plan_of(cache, item) for item in (template, template, other, other, elsewhere, elsewhere, mine, mine)]
        assert len({id(plan) for plan in plans}) == 4
        assert [plan.pod_class.namespace for plan in plans[4:6]] == ["other", "other"]


def test_a_reused_address_never_finds_a_stale_identity_entry() -> None:
    cache = make()
    for number in range(2000):
        item = pod(cpu=f"{number % 37 + 1}m").obj()
        assert plan_of(cache, item).footprint.vector[3] == number % 37 + 1
        twin = replace(item, metadata=replace(item.metadata, name="twin"))
        assert plan_of(cache, twin).footprint.vector[3] == number % 37 + 1


def test_a_plan_requested_twice_stays_cached() -> None:
    cache = make()
    first = plan_of(cache, pod(cpu="1m").obj())
    assert plan_of(cache, pod(cpu="1m").obj()) is first
    for number in range(5 * MAX_PROBATION):
        plan_of(cache, pod(cpu=f"{number + 2}m").obj())
    assert plan_of(cache, pod(cpu="1m").obj()) is first


def alive() -> WeakSet[Plan]:
    gc.collect()
    return WeakSet(item for item in gc.get_objects() if isinstance(item, Plan))


def test_pods_seen_once_leave_few_plans_in_memory() -> None:
    cache = make()
    before = len(alive())
    for number in range(300):
        plan_of(cache, pod(cpu=f"{number + 1}m").obj())
    assert len(alive()) - before <= MAX_PROBATION


def test_pods_with_one_spec_and_unique_labels_leave_few_plans_in_memory() -> None:
    cache = make()
    before = len(alive())
    template = pod().obj()
    for number in range(300):
        labels = {"statefulset.kubernetes.io/pod-name": f"p-{number}"}
        plan_of(cache, replace(template, metadata=replace(template.metadata, labels=labels)))
    assert len(alive()) - before <= MAX_PROBATION


def test_a_growing_cluster_leaves_room_for_fewer_plans_on_probation() -> None:
    scheduler = make_scheduler(in_tree=("NodeResourcesFit",), nodes=("n1",))
    plans = PlanCache(scheduler.state, budget_bytes=8 * MAX_PROBATION * plan_bytes(scheduler.state))
    cache = (plans, scheduler.profiles["default-scheduler"])
    before, small = len(alive()), plan_bytes(scheduler.state)
    found = []
    for number in range(2 * MAX_PROBATION + 1):
        if number == 2 * MAX_PROBATION:
            found.append(len(alive()) - before)
            while plan_bytes(scheduler.state) < 2 * small:
                scheduler.handle(None, make_node(f"more-{len(scheduler.state.nodes)}").obj(), 0)
        plan_of(cache, replace(pod().obj(), metadata=replace(pod().obj().metadata, labels={"app": f"a-{number}"})))
    found.append(len(alive()) - before)
    assert found == [MAX_PROBATION, MAX_PROBATION * small // plan_bytes(scheduler.state)]
    assert found[1] < MAX_PROBATION // 2


def test_the_oldest_templates_are_evicted_beyond_the_memory_budget() -> None:
    scheduler = make_scheduler(in_tree=("NodeResourcesFit",), nodes=("n1",))
    room = 10
    plans = PlanCache(scheduler.state, budget_bytes=room * plan_bytes(scheduler.state))
    cache = (plans, scheduler.profiles["default-scheduler"])
    before = len(alive())
    items = [pod(cpu=f"{number + 1}m").obj() for number in range(40)]
    for item in items:
        # The second lookup by bytes caches the plan, and the third one, by identity, adds an entry that must be
        # evicted, too.
        for _ in range(3):
            plan_of(cache, item)
    # Each plan was found again, so none is left on probation.
    assert len(alive()) - before == room
    kept = plan_of(cache, items[-room])
    assert plan_of(cache, items[-room]) is kept
    plan_of(cache, items[0])
    assert plan_of(cache, items[-room]) is kept


class Annotated(PerNodePlugin):
    """Reads an annotation, and includes it in the signature."""

    name = "Annotated"

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | None:
        return None if pod.metadata.annotations.get("node") == node.name else "node(s) were not asked for"

    def sign_pod(self, pod: Pod) -> Hashable:
        return pod.metadata.annotations.get("node")


class SignsNothing(Annotated):
    name = "SignsNothing"

    def sign_pod(self, pod: Pod) -> Hashable:
        return None


def test_pods_with_different_plugin_signatures_get_different_plans() -> None:
    cache = make(Annotated)
    template = pod().obj()

    def annotated(name: str, node: str | None) -> Pod:
        annotations = {} if node is None else {"node": node}
        return replace(template, metadata=replace(template.metadata, name=name, annotations=annotations))

    plans = {node: [plan_of(cache, annotated("p", node)) for _ in "twice"][-1] for node in ("a", "b", None)}
    assert len({id(plan) for plan in plans.values()}) == 3
    for node in ("a", None, "b", None, "a", "b", None):
        for name in "qrs":
            assert plan_of(cache, annotated(name, node)) is plans[node]


def test_pods_share_a_plan_if_the_plugin_returns_an_empty_signature() -> None:
    cache = make(SignsNothing)
    assert plan_of(cache, pod("p").annotation(node="a").obj()) is plan_of(cache, pod("q").annotation(node="b").obj())


def claiming(name: str, cpu: str = "1") -> Pod:
    return pod(name, cpu).spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}]).obj()


def ephemeral(name: str) -> Pod:
    template = {"spec": {"storageClassName": "fast"}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    return pod(name).uid(f"uid-of-{name}").spec(volumes=[volume]).obj()


def test_plans_for_ephemeral_volumes_contain_the_pods_own_name_and_uid() -> None:
    scheduler = make_scheduler(in_tree=("NodeResourcesFit", "VolumeBinding", "NodeVolumeLimits"), nodes=("n1",))
    cache = (scheduler.plans, scheduler.profiles["default-scheduler"])
    for name in ("a", "b", "a", "c"):
        specs = plan_of(cache, ephemeral(name)).specs
        for plugin in ("VolumeBinding", "NodeVolumeLimits"):
            assert (specs[plugin].pod_name, specs[plugin].pod_uid) == (name, f"uid-of-{name}")


def item_cpu(item: Pod) -> int:
    return int(fit_requests(item)["cpu"])


@pytest.mark.parametrize(
    ("pods", "runs"),
    [
        pytest.param(
            [pod(cpu=f"{number + 1}m").obj() for number in range(10)],
            {"NodeResourcesFit": 10, "TaintToleration": 1},
            id="pods that differ in requests share what does not look at them",
        ),
        pytest.param(
            [claiming(f"c{number}") for number in range(10)],
            {"NodeResourcesFit": 1, "TaintToleration": 1},
            id="pods that differ in claims share what requests decide, too",
        ),
    ],
)
def test_a_plan_used_once_is_adapted_to_the_next_similar_pod(pods: list[Pod], runs: dict[str, int]) -> None:
    scheduler = make_scheduler(in_tree=("NodeResourcesFit", "TaintToleration"), nodes=("n1", "n2", "n3"))
    plans = scheduler.plans
    results: dict[int, RuleResult] = {}
    for number, item in enumerate(pods):
        plan = plan_of((plans, scheduler.profiles["default-scheduler"]), item)
        plan.run_pre_filter_plugins(CycleState())
        plan.refresh_filters()
        plan.refresh_scores()
        assert (plan.pod, plan.specs["NodeResourcesFit"].requests[0].amount) == (item, item_cpu(item))
        results.update({id(result): result for result in (*plan.filtered.results, *plan.totals.results)})
        assert plan.filtered.combined == min(number + 1, max(runs.values()))
    assert plans.adapted == len(pods) - 1
    for kind in (FilterResult, ScoreResult):
        found = [result for result in results.values() if isinstance(result, kind)]
        # The first plan's results could have been shared; those made for the second pod are adapted to all others.
        assert Counter(result.name for result in found) == {name: min(count, 2) for name, count in runs.items()}
        assert {name: sum(each.epoch for each in found if each.name == name) for name in runs} == runs
    # The first change replaces results that could have been shared.
    changing = [result for result in (*plan.filtered.results, *plan.totals.results) if runs[result.name] > 1]
    assert plans.results.adapted == len(changing) * (len(pods) - 2)


def test_plans_share_the_results_of_a_plan_that_is_used_again() -> None:
    scheduler = make_scheduler(in_tree=("NodeResourcesFit",), nodes=("n1",))
    cache = (scheduler.plans, scheduler.profiles["default-scheduler"])
    plans = []
    for name, cpu in (("a", "1"), ("b", "2"), ("c", "2"), ("d", "3"), ("e", "2")):
        item = pod(name, cpu=cpu).label(app="other" if name == "e" else "web").obj()
        plan = plan_of(cache, item)
        plan.run_pre_filter_plugins(CycleState())
        plan.refresh_filters()
        plans.append(plan)
    assert scheduler.plans.adapted == 1
    assert plans[1] is plans[2]
    assert plans[4].filtered.results[0] is plans[1].filtered.results[0]
    assert plans[3].filtered.results[0] is not plans[1].filtered.results[0]


def test_an_adapted_plan_finds_the_feasible_nodes_of_each_pod() -> None:
    scheduler = make_scheduler(in_tree=("NodeResourcesFit", "TaintToleration"), nodes=("n1", "n2"))
    cache = (scheduler.plans, scheduler.profiles["default-scheduler"])
    for cpu, want in (("1", 2), ("1000", 0), ("2", 2)):
        plan = plan_of(cache, pod(cpu=cpu).obj())
        plan.run_pre_filter_plugins(CycleState())
        plan.refresh_filters()
        assert plan.filtered.count == want


class Amount:
    """Equal to every other amount, like params that compare only the data that decides about nodes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount)

    def __hash__(self) -> int:
        return 0


@dataclass(frozen=True)
class AmountSpec:
    key: str


class KnowsAmounts(PreFilterPlugin[AmountSpec], FilterPlugin[AmountSpec]):
    name = "KnowsAmounts"

    def compile(self, pod: Pod, cluster: ClusterState) -> AmountSpec:
        return AmountSpec(str(item_cpu(pod)))

    def pre_filter(self, spec: AmountSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult:
        return PreFilterResult((Amount(spec.key),))

    def filter(self, spec: AmountSpec, params: Params | None, rows: Rows) -> Codes:
        assert params is not None
        assert isinstance(params[0], Amount)
        return np.full(len(rows), params[0].text != spec.key, dtype=np.uint16)

    def reasons(self, spec: AmountSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        return ("the params are those of another pod",)


class KnowsOneAmount(KnowsAmounts):
    SAME = PreFilterResult((Amount("same"),))

    def pre_filter(self, spec: AmountSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult:
        return self.SAME

    def filter(self, spec: AmountSpec, params: Params | None, rows: Rows) -> Codes:
        return np.full(len(rows), params is not self.SAME.params, dtype=np.uint16)


class Once(KnowsAmounts):
    name = "Once"
    pre_reads = Reads.NOTHING


class OnceToo(Once):
    name = "OnceToo"


@pytest.mark.parametrize("plugin", [KnowsAmounts, KnowsOneAmount], ids=["equal ones", "the same ones"])
def test_an_adapted_plan_passes_the_params_of_each_pod(plugin: type[KnowsAmounts]) -> None:
    assert_that_plans_are_adapted(plugin)


def test_an_adapted_plan_runs_plugins_again_that_run_once_for_each_spec() -> None:
    assert_that_plans_are_adapted(Once, OnceToo)


def assert_that_plans_are_adapted(*plugins: type[KnowsAmounts]) -> None:
    scheduler = make_scheduler(*plugins, in_tree=("NodeResourcesFit",), nodes=("n1", "n2"))
    for number in range(4):
        scheduler.handle(None, pod(f"p{number}", cpu=f"{number + 1}m").obj(), 0)
        report = scheduler.schedule_one(0)
        assert report is not None
        assert report.node_name, report.message
    assert scheduler.plans.adapted == 3


class FailsOnce(FilterPlugin[AmountSpec]):
    name = "FailsOnce"
    fails: ClassVar[bool] = False

    def compile(self, pod: Pod, cluster: ClusterState) -> AmountSpec:
        if self.fails:
            raise ValueError("cannot compile")
        return AmountSpec(str(item_cpu(pod)))

    def filter(self, spec: AmountSpec, params: Params | None, rows: Rows) -> Codes:
        return np.zeros(len(rows), dtype=np.uint16)


def test_a_plan_that_a_plugin_failed_to_adapt_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = make_scheduler(FailsOnce, in_tree=("NodeResourcesFit",), nodes=("n1",))
    cache = (scheduler.plans, scheduler.profiles["default-scheduler"])
    first = plan_of(cache, pod("a", cpu="1500m").obj())
    monkeypatch.setattr(FailsOnce, "fails", True)
    with pytest.raises(ValueError, match="cannot compile"):
        plan_of(cache, pod("b", cpu="1").obj())
    monkeypatch.setattr(FailsOnce, "fails", False)
    again = plan_of(cache, pod("c", cpu="1").obj())
    assert again is not first
    assert {spec.key for name, spec in again.specs.items() if name == "FailsOnce"} == {"1000"}


def test_adapted_plans_decide_as_new_plans_in_random_histories() -> None:
    adapted = 0
    for seed in range(12):
        random = Random(seed)
        adapting, renewing = (
            make_scheduler(
                in_tree=("NodeResourcesFit", "NodeResourcesBalancedAllocation", "NodePorts", "ImageLocality")
            )
            for _ in range(2)
        )
        nodes: dict[str, Node] = {}
        for step in range(60):
            old: Node | Pod | None = None
            new: Node | Pod | None
            if step < 3 or random.random() < 0.1:
                name = f"n{random.randrange(5)}"
                size = {"cpu": random.choice("124"), "memory": random.choice(("2Gi", "4Gi")), "pods": "10"}
                old, new = nodes.get(name), make_node(name).capacity(**size).obj()
                nodes[name] = new
            elif random.random() < 0.2 and adapting.state.pods:
                old, new = adapting.pods[random.choice(sorted(adapting.state.pods))], None
            else:
                sizes = {"cpu": f"{random.randint(1, 1200)}m", "memory": f"{random.randint(1, 1500)}Mi"}
                asking = make_pod(f"p{step}").req(**sizes).label(app=random.choice("ab"))
                new = asking.host_port(80).obj() if random.random() < 0.2 else asking.obj()
            reports = []
            for scheduler in (adapting, renewing):
                scheduler.handle(old, new, step * 20 * SECOND)
                renewing.plans = PlanCache(renewing.state)
                report = scheduler.schedule_one(step * 20 * SECOND)
                reports.append((report.outcome, report.node_name, report.message) if report is not None else None)
            assert reports[0] == reports[1], (seed, step)
        adapting.state.check_invariants()
        adapted += adapting.plans.results.adapted
    assert adapted > 100


def test_a_retained_plan_is_not_adapted() -> None:
    cache = make()
    kept = plan_of(cache, pod(cpu="1m").obj())
    cache[0].promote(kept)
    others = [plan_of(cache, pod(cpu=f"{number + 2}m").obj()) for number in range(3)]
    assert kept not in others
    assert kept.footprint.vector[3] == 1
    assert plan_of(cache, pod(cpu="1m").obj()) is kept


def test_a_placement_reevaluates_one_row_of_rules_that_read_usage() -> None:
    scheduler = make_scheduler(in_tree=("NodeResourcesFit", "TaintToleration"), nodes=("n1", "n2", "n3"))
    for number in range(10):
        scheduler.handle(None, pod(f"p{number}", cpu="1m").obj(), 0)
        assert scheduler.schedule_one(0) is not None
    plan = plan_of((scheduler.plans, scheduler.profiles["default-scheduler"]), pod(cpu="1m").obj())
    asked = {result.name: (result.epoch, result.evaluated_rows) for result in plan.filtered.results}
    assert asked == {"NodeResourcesFit": (1, 9), "TaintToleration": (1, 0)}
