"""DefaultPreemption: eligible pods, victims, the choice of a node, and the messages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis, PostFilterResult
from bayplan.framework.plugin import PostFilterPlugin
from bayplan.framework.status import Code, Status, error, unschedulable
from bayplan.objects.pod import Pod
from bayplan.plugins.default_preemption import WAITING, DefaultPreemption
from bayplan.testing.builders import NodeBuilder, PodBuilder
from tests.engine.preemption_worlds import (
    Preemption,
    budget,
    node,
    preempt,
    preemptor,
    running,
    scheduler_of,
    terminating,
)


def plugin_of(scheduler: Scheduler) -> DefaultPreemption:
    found = scheduler.profiles["default-scheduler"].plugins["DefaultPreemption"]
    assert isinstance(found, DefaultPreemption)
    return found


def nominate(scheduler: Scheduler, builder: PodBuilder, node_name: str) -> Pod:
    pod = builder.nominated(node_name).obj()
    scheduler.pods[pod.key] = pod
    scheduler.queue.nominator.add(pod)
    return pod


def reasons_of(found: Preemption) -> Sequence[str]:
    assert found.status is not None
    # DynamicResources adds its own reason before that of preemption.
    return [reason for reason in found.status.reasons if reason.startswith("preemption:")]


# Victims.


@pytest.mark.parametrize(
    ("objects", "pod", "want"),
    [
        pytest.param([running("low", "3", 0)], preemptor(), ("default/low",), id="a pod of lower priority is evicted"),
        pytest.param([running("equal", "3", 100)], preemptor(), None, id="one of equal priority stays"),
        pytest.param([running("high", "3", 101)], preemptor(), None, id="one of higher priority stays"),
        pytest.param(
            [running("a", "1", 1), running("b", "1", 2), running("c", "1", 3), running("d", "1", 4)],
            preemptor(),
            ("default/b", "default/a"),
            id="the least important pods are evicted, the most important of them first",
        ),
        pytest.param(
            [running("big", "3", 1), running("small", "1", 2)],
            preemptor(),
            ("default/big",),
            id="a pod that need not be evicted is reprieved",
        ),
        pytest.param(
            [
                running("old", "2", 0, started="2026-01-01T00:00:00Z"),
                running("new", "2", 0, started="2026-01-01T01:00:00Z"),
            ],
            preemptor(),
            ("default/new",),
            id="of equal priority the pod that ran longer stays",
        ),
        pytest.param(
            [running("dated", "2", 0, started="2026-01-01T00:00:00Z"), running("undated", "2", 0)],
            preemptor(),
            ("default/undated",),
            id="without a start time a pod counts as just started",
        ),
        pytest.param(
            [running("critical", "3", -10)], preemptor(priority=-5), ("default/critical",), id="below 0 likewise"
        ),
    ],
)
def test_pods_of_lower_priority_are_victims(
    objects: list[PodBuilder], pod: PodBuilder, want: tuple[str, ...] | None
) -> None:
    found = preempt(scheduler_of([node(), *objects]), pod.obj())
    if want is None:
        assert found.candidates == {}
        assert reasons_of(found) == [
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        ]
    else:
        assert found.candidates == {"n1": want}
        assert found.found is not None
        assert found.found.nominated_node_name == "n1"
        assert found.found.victims == want


@pytest.mark.parametrize(
    ("selector", "allowed", "labels", "want", "violations"),
    [
        pytest.param({"app": "db"}, 0, {"app": "db"}, ("default/free",), 0, id="a protected pod is spared first"),
        pytest.param({"app": "db"}, 1, {"app": "db"}, ("default/db",), 0, id="within the budget it counts as others"),
        pytest.param({}, 0, {"app": "db"}, ("default/db",), 0, id="an empty selector protects no pod"),
        pytest.param(None, 0, {"app": "db"}, ("default/db",), 0, id="no selector protects no pod"),
        pytest.param({"app": "db"}, 0, {}, ("default/db",), 0, id="a pod without labels is protected by no budget"),
    ],
)
def test_rule_7_a_budget_protects_the_selected_pods(
    selector: dict[str, str] | None, allowed: int, labels: dict[str, str], want: tuple[str, ...], violations: int
) -> None:
    # "free" has the higher priority, so it is a victim only if this protects the other pod's budget.
    objects = [running("free", "2", 2), running("db", "2", 1).label(labels), budget(selector, allowed)]
    found = preempt(scheduler_of([node(), *objects]), preemptor().obj())
    assert found.found is not None
    assert [(each.victims, each.pdb_violations) for each in found.shortlist] == [(want, violations)]


def test_a_budget_is_violated_if_preemption_has_no_alternative() -> None:
    objects = [node(), running("db", "3", 1).label(app="db"), budget({"app": "db"}, 0)]
    found = preempt(scheduler_of(objects), preemptor().obj())
    assert found.found is not None
    assert [(each.victims, each.pdb_violations) for each in found.shortlist] == [(("default/db",), 1)]


def test_disrupted_pods_do_not_count_against_the_budget() -> None:
    disrupted = budget({"app": "db"}, 0)
    disrupted["status"] = {"disruptionsAllowed": 0, "disruptedPods": {"db": "2026-01-01T00:00:00Z"}}
    objects = [node(), running("free", "2", 2), running("db", "2", 1).label(app="db"), disrupted]
    assert preempt(scheduler_of(objects), preemptor().obj()).candidates == {"n1": ("default/db",)}


# Nodes.


@pytest.mark.parametrize(
    ("objects", "pod", "want"),
    [
        pytest.param(
            [node("n1", "1")], preemptor(), {}, id="preemption cannot help a request above the node's capacity"
        ),
        pytest.param(
            [node("n1", "4", pods="1"), running("low", "1")],
            preemptor(),
            {"n1": ("default/low",)},
            id="preemption can help a node with too many pods",
        ),
        pytest.param(
            [node("n1").taint("t"), running("low", "3")], preemptor(), {}, id="preemption cannot help against a taint"
        ),
        pytest.param(
            [node("n1").unschedulable(), running("low", "3")],
            preemptor(),
            {},
            id="preemption cannot help against a cordon",
        ),
        pytest.param(
            [node("n1"), running("low", "3")],
            preemptor().node_selector(disk="ssd"),
            {},
            id="preemption cannot help against a missing label",
        ),
        pytest.param(
            [node("n1"), running("low", "1").host_port(80)],
            preemptor().host_port(80),
            {"n1": ("default/low",)},
            id="preemption can help against a port in use",
        ),
    ],
)
def test_rule_3_only_unschedulable_nodes_are_candidates(
    objects: list[NodeBuilder | PodBuilder], pod: PodBuilder, want: dict[str, tuple[str, ...]]
) -> None:
    found = preempt(scheduler_of(objects), pod.obj())
    assert found.candidates == want
    if not want:
        text = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        assert reasons_of(found) == [text]


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        pytest.param(
            [running("a", "4", 0).label(app="db")],
            [running("b", "4", 50, "n2")],
            ["n2"],
            id="fewest budget violations first, regardless of priorities",
        ),
        pytest.param([running("a", "4", 5)], [running("b", "4", 4, "n2")], ["n2"], id="then the lowest top priority"),
        pytest.param(
            [running("a", "2", 5), running("a2", "2", 5)],
            [running("b", "2", 5, "n2"), running("b2", "2", 4, "n2")],
            ["n2"],
            id="then the lowest sum of priorities",
        ),
        pytest.param(
            [running("a", "2", -3), running("a2", "2", -3)],
            [running("b", "4", -3, "n2")],
            ["n2"],
            id="more victims weigh more below 0, too",
        ),
        pytest.param(
            [running("a", "4", 5, started="2026-01-01T00:00:00Z")],
            [running("b", "4", 5, "n2", started="2026-01-01T00:00:01Z")],
            ["n2"],
            id="then the latest start of the most important victims",
        ),
        pytest.param(
            [running("a", "4", 5)], [running("b", "4", 5, "n2")], ["n1", "n2"], id="else they are equally good"
        ),
    ],
)
def test_the_best_candidate_is_chosen_by_the_documented_criteria(
    first: list[PodBuilder], second: list[PodBuilder], want: list[str]
) -> None:
    objects = [node("n1"), node("n2"), *first, *second, budget({"app": "db"}, 0)]
    preemption = preempt(scheduler_of(objects), preemptor("4").obj())
    assert preemption.found is not None
    assert preemption.best_nodes == want
    assert preemption.found.nominated_node_name == want[0]


# Eligible pods.


def test_a_pod_with_preemption_policy_never_does_not_preempt() -> None:
    found = preempt(scheduler_of([node(), running("low", "3")]), preemptor().spec(preemptionPolicy="Never").obj())
    assert found.found is None
    assert reasons_of(found) == ["preemption: not eligible due to preemptionPolicy=Never."]


@pytest.mark.parametrize(
    ("victim", "eligible"),
    [
        pytest.param(
            terminating(running("low", "3"), by_preemption=True), False, id="a victim of preemption is waited for"
        ),
        pytest.param(
            terminating(running("low", "3")), True, id="a pod that was deleted for another reason is not waited for"
        ),
        pytest.param(
            terminating(running("low", "3", 100), by_preemption=True),
            True,
            id="a victim that the pod cannot preempt is not waited for",
        ),
        pytest.param(running("low", "3"), True, id="a pod that is not terminating is not waited for"),
    ],
)
def test_a_nominated_pod_waits_for_terminating_victims(victim: PodBuilder, eligible: bool) -> None:
    scheduler = scheduler_of([node(), victim])
    found = preempt(scheduler, nominate(scheduler, preemptor(), "n1"))
    refused = ["preemption: not eligible due to a terminating pod on the nominated node."]
    assert (reasons_of(found) != refused) is eligible


def test_a_pod_does_not_wait_for_victims_on_an_unresolvable_nominated_node() -> None:
    victim = terminating(running("leaving", "3"), by_preemption=True)
    scheduler = scheduler_of([node("n1").taint("t"), victim, node("n2"), running("low", "3", on="n2")])
    found = preempt(scheduler, nominate(scheduler, preemptor(), "n1"))
    assert found.candidates == {"n2": ("default/low",)}


# The nomination.


def test_rule_4_a_search_without_a_candidate_clears_the_nomination() -> None:
    scheduler = scheduler_of([node(), running("high", "3", 1000)])
    found = preempt(scheduler, nominate(scheduler, preemptor(), "n1")).found
    assert found is not None
    assert found.nominated_node_name == ""


@pytest.mark.parametrize(
    ("victim", "policy"),
    [
        pytest.param(running("low", "3"), "Never", id="a pod that never preempts keeps it"),
        pytest.param(
            terminating(running("low", "3"), by_preemption=True), None, id="a waiting pod keeps its nomination"
        ),
    ],
)
def test_rule_4_the_nomination_remains_if_no_search_runs(victim: PodBuilder, policy: str | None) -> None:
    scheduler = scheduler_of([node(), victim])
    pod = preemptor() if policy is None else preemptor().spec(preemptionPolicy=policy)
    assert preempt(scheduler, nominate(scheduler, pod, "n1")).found is None


@pytest.mark.parametrize(
    ("victim", "asynchronous", "want"),
    [
        pytest.param(running("low", "3"), True, True, id="nominations of lower priority end"),
        pytest.param(running("low", "3"), False, True, id="without the gate as well"),
        pytest.param(
            terminating(running("low", "3")),
            True,
            False,
            id="not if all victims are terminating and preemption is asynchronous",
        ),
        pytest.param(
            terminating(running("low", "3")),
            False,
            True,
            id="without the gate also if preemption is asynchronous",
        ),
    ],
)
def test_rule_5_nominations_of_lower_priority_are_cleared(victim: PodBuilder, asynchronous: bool, want: bool) -> None:
    scheduler = scheduler_of([node(), victim], gates={"SchedulerAsyncPreemption": asynchronous})
    nominate(scheduler, preemptor("1", 50, "nominee"), "n1")
    nominate(scheduler, preemptor("1", 100, "peer"), "n1")
    found = preempt(scheduler, preemptor().obj()).found
    assert found is not None
    lower = scheduler.lower_nominations(preemptor().obj(), "n1")
    assert [pod.key for pod in lower] == ["default/nominee"]
    assert found.clears_nominations is want


def test_rule_6_dry_runs_count_nominated_pods_of_equal_priority() -> None:
    objects = [node(), running("a", "1", 1), running("b", "1", 2), running("c", "1", 3), running("d", "1", 4)]
    alone = preempt(scheduler_of(objects), preemptor("1").obj())
    assert alone.candidates == {"n1": ("default/a",)}
    scheduler = scheduler_of(objects)
    nominate(scheduler, preemptor("2", 100, "peer"), "n1")
    assert preempt(scheduler, preemptor("1").obj()).candidates == {"n1": ("default/c", "default/b", "default/a")}
    scheduler = scheduler_of(objects)
    nominate(scheduler, preemptor("2", 99, "lesser"), "n1")
    assert preempt(scheduler, preemptor("1").obj()).candidates == {"n1": ("default/a",)}


# Messages.


def test_messages_count_nodes_by_reason() -> None:
    objects = [
        node("n1"),
        running("high", "3", 1000, "n1"),
        node("n2"),
        running("low", "1", 0, "n2"),
        running("high2", "3", 1000, "n2"),
        node("n3").taint("t"),
    ]
    found = preempt(scheduler_of(objects), preemptor().obj())
    assert reasons_of(found) == [
        "preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    ]


class StubPostFilter(PostFilterPlugin[None]):
    """A PostFilter with a constant result."""

    name = "Stub"

    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> tuple[PostFilterResult | None, Status]:
        assert isinstance(self.arguments, Status)
        return None, self.arguments


def _with_stub_before(scheduler: Scheduler, status: Status) -> Scheduler:
    profile = scheduler.profiles["default-scheduler"]
    profile.post_filter = (StubPostFilter(status, profile.handle), plugin_of(scheduler))
    return scheduler


def test_rule_1_an_earlier_post_filter_error_stops_preemption_and_preserves_the_nomination() -> None:
    scheduler = _with_stub_before(scheduler_of([node(), running("low", "3")]), error("not found"))
    found = preempt(scheduler, nominate(scheduler, preemptor(), "n1"))
    assert found.found is None
    assert found.status is not None
    assert found.status.code is Code.ERROR
    assert found.message == "0/1 nodes are available: 1 Insufficient cpu. not found"


def test_rule_2_messages_of_earlier_post_filters_come_first() -> None:
    scheduler = _with_stub_before(scheduler_of([node(), running("high", "3", 1000)]), unschedulable("still waiting"))
    assert preempt(scheduler, preemptor().obj()).message == (
        "0/1 nodes are available: 1 Insufficient cpu. still waiting, preemption: 0/1 nodes are available: "
        "1 No preemption victims found for incoming pod."
    )


# The gate.


def test_pre_enqueue_rejects_a_preemptor_until_its_last_victim_is_terminating() -> None:
    scheduler = scheduler_of([node(), running("a", "2", 1), running("b", "2", 2)])
    pod = preemptor("4").obj()
    plugin = plugin_of(scheduler)
    assert plugin.pre_enqueue(pod).ok
    preempt(scheduler, pod)
    assert plugin.pre_enqueue(pod) == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (WAITING,))
    scheduler.handle(scheduler.pods["default/b"], None, 1)
    assert not plugin.pre_enqueue(pod).ok
    leaving = terminating(running("a", "2", 1)).obj()
    scheduler.handle(scheduler.pods["default/a"], leaving, 2)
    assert plugin.pre_enqueue(pod).ok


def test_pre_enqueue_admits_a_preemptor_whose_evictions_failed() -> None:
    scheduler = scheduler_of([node(), running("low", "3")])
    pod = preemptor().obj()
    preempt(scheduler, pod)
    assert not plugin_of(scheduler).pre_enqueue(pod).ok
    scheduler.preemption_failed(pod, 1)
    assert plugin_of(scheduler).pre_enqueue(pod).ok


def test_pre_enqueue_admits_a_preemptor_and_registers_no_event_without_the_gate() -> None:
    scheduler = scheduler_of([node(), running("low", "3")], gates={"SchedulerAsyncPreemption": False})
    pod = preemptor().obj()
    preempt(scheduler, pod)
    assert plugin_of(scheduler).pre_enqueue(pod).ok
    assert plugin_of(scheduler).events_to_register() == ()


def test_a_deleted_pod_does_not_preempt() -> None:
    scheduler = scheduler_of([node(), running("low", "3")])
    pod = preemptor().obj()
    found = preempt(scheduler, pod)
    assert found.result.diagnosis is not None
    del scheduler.pods[pod.key]
    result, status = plugin_of(scheduler).post_filter(pod, found.result.diagnosis, CycleState())
    assert result is None
    assert status.reasons == ('preemption: pod "vip" not found',)


def test_the_newest_version_of_the_pod_decides_whether_it_may_preempt() -> None:
    scheduler = scheduler_of([node(), running("low", "3")])
    pod = preemptor().obj()
    found = preempt(scheduler, pod)
    assert found.result.diagnosis is not None
    scheduler.pods[pod.key] = replace(pod, spec=replace(pod.spec, preemption_policy="Never"))
    _, status = plugin_of(scheduler).post_filter(pod, found.result.diagnosis, CycleState())
    assert status.reasons == ("preemption: not eligible due to preemptionPolicy=Never.",)


def test_an_explicit_nomination_is_stored_in_the_nominator() -> None:
    scheduler = scheduler_of([node()])
    pod = preemptor().obj()
    scheduler.pods[pod.key] = pod
    scheduler.queue.nominator.add(pod, "n1")
    assert [*scheduler.queue.nominator.on_node("n1").values()] == [pod.key]
