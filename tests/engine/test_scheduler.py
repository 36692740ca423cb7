"""The life of a pod in the scheduler: the order and arguments of extension points, and the effects of their results."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.engine.records import Outcome
from bayplan.engine.scheduler import MAX_EVENT_NOTE, Scheduler
from bayplan.framework.diagnosis import PostFilterResult
from bayplan.framework.events import NODE_ADD
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from bayplan.objects.pod import Pod
from bayplan.testing import make_pod
from tests.engine.recorders import (
    SECOND,
    Log,
    as_tuples,
    confirm,
    make_recorder,
    make_scheduler,
    on_nodes,
    small_node,
    waits,
)


def start(says: dict[str, Any], *nodes: str, post_filter: bool = False) -> tuple[Scheduler, Log]:
    """Return a scheduler with one recorder A, that saw pod p."""
    log: Log = []
    scheduler = make_scheduler(make_recorder("A", log, says), nodes=nodes or ("n1", "n2"), post_filter=post_filter)
    scheduler.handle(None, make_pod("p").obj(), 0)
    return scheduler, log


def points(log: Log) -> list[str]:
    return [f"{entry[0]}.{entry[1]}" for entry in log]


def test_every_extension_point_is_called_in_order() -> None:
    scheduler, log = start({"scores": {"n1": 10, "n2": 70}})
    report = scheduler.schedule_one(5)
    assert [*scheduler.assumed] == ["default/p"]
    confirm(scheduler, "p", "n2", 6)
    assert log == [
        ("A", "pre_enqueue", "p"),
        ("A", "pre_filter", "p"),
        ("A", "filter", "p", ("n1", "n2"), ()),
        ("A", "pre_score", "p", (True, True)),
        ("A", "score", "p", ("from pre_score",)),
        ("A", "scale", (10, 70)),
        ("A", "normalize", (70,)),
        *[entry for entry in log[7:] if entry[1] == "normalize"],
        ("A", "reserve", "p", "n2"),
        ("A", "permit", "p", "n2"),
        ("A", "pre_bind", "p", "n2", "n2"),
        ("A", "bind", "p", "n2"),
        ("A", "post_bind", "p", "n2"),
    ]
    assert report is not None
    assert (report.outcome, report.node_name, report.message) == (Outcome.SCHEDULED, "n2", "")
    assert as_tuples(report.actions) == [("bind", "p", "n2")]
    assert on_nodes(scheduler) == {"p": "n2"}
    assert scheduler.assumed == {}
    record = scheduler.records[0]
    assert (record.outcome, record.node, record.ties, record.total, record.attempt) == (0, "n2", 1, 70, 1)
    assert scheduler.schedule_one(5) is None


def test_a_single_feasible_node_is_chosen_without_scoring() -> None:
    scheduler, log = start({"refuses": ("n1",)})
    report = scheduler.schedule_one(0)
    assert report is not None
    assert report.node_name == "n2"
    assert not {"A.pre_score", "A.score", "A.normalize"} & set(points(log))


def test_pre_filter_can_limit_the_nodes_and_skip_its_filter() -> None:
    scheduler, _ = start({"pre_filter": PreFilterResult(node_names=frozenset(("n2", "gone")))})
    report = scheduler.schedule_one(0)
    assert report is not None
    assert report.node_name == "n2"
    assert scheduler.records[0].evaluated_nodes == 1
    scheduler, log = start({"pre_filter": SKIP, "refuses": ("n1", "n2")})
    report = scheduler.schedule_one(0)
    assert report is not None
    assert report.node_name == "n1"
    assert "A.filter" not in points(log)


def test_pre_score_can_skip_its_score() -> None:
    scheduler, log = start({"pre_score": SKIP, "scores": {"n2": 9}})
    report = scheduler.schedule_one(0)
    assert report is not None
    assert report.node_name == "n1"
    assert "A.score" not in points(log)


NO, NEVER, BOOM = unschedulable("no"), unresolvable("never"), error("boom")
PENDING = Status(Code.PENDING, ("later",))
SHORT = "0/1 nodes are available: 1 no."


@pytest.mark.parametrize(
    ("says", "want"),
    [
        pytest.param({"reserve": NO}, (SHORT, "Unschedulable", "unschedulable"), id="Reserve rejects"),
        pytest.param(
            {"reserve": unresolvable("b", "a")},
            ("0/1 nodes are available: 1 a, 1 b.", "Unschedulable", "unschedulable"),
            id="reasons are counted and sorted as those of nodes",
        ),
        pytest.param(
            {"reserve": BOOM}, ('running Reserve plugin "A": boom', "SchedulerError", "backoff"), id="Reserve fails"
        ),
        pytest.param({"permit": (NO, 0)}, (SHORT, "Unschedulable", "unschedulable"), id="Permit rejects"),
        pytest.param(
            {"permit": (BOOM, 0)}, ('running Permit plugin "A": boom', "SchedulerError", "backoff"), id="Permit fails"
        ),
        pytest.param({"pre_bind": NO}, ("no", "Unschedulable", "backoff"), id="what PreBind rejects is tried again"),
        pytest.param(
            {"pre_bind": BOOM}, ('running PreBind plugin "A": boom', "SchedulerError", "backoff"), id="PreBind fails"
        ),
        pytest.param({"bind": NEVER}, ("never", "Unschedulable", "backoff"), id="what Bind rejects is tried again"),
        pytest.param({"bind": BOOM}, ('running Bind plugin "A": boom', "SchedulerError", "backoff"), id="Bind fails"),
    ],
)
def test_a_failure_after_node_selection_unreserves_and_requeues_the_pod(
    says: dict[str, Any], want: tuple[str, str, str]
) -> None:
    message, reason, place = want
    scheduler, log = start(says)
    report = scheduler.schedule_one(SECOND)
    assert report is not None
    outcome = Outcome.ERROR if reason == "SchedulerError" else Outcome.UNSCHEDULABLE
    assert (report.outcome, report.node_name, report.message) == (outcome, "", message)
    assert as_tuples(report.actions) == [
        ("event", "p", "Warning FailedScheduling Scheduling", message),
        ("condition", "p", reason, message),
    ]
    # The last entry is from the queue's call of PreEnqueue, which is excluded.
    assert [entry for entry in log if entry[1] != "pre_enqueue"][-1] == ("A", "unreserve", "p", "n1")
    assert on_nodes(scheduler) == {}
    assert scheduler.assumed == {}
    assert waits(scheduler) == {"p": place}
    assert [(record.outcome, record.message) for record in scheduler.records] == [(0, ""), (outcome, message)]
    assert scheduler.queue.in_flight() == []
    scheduler.state.check_invariants()


@pytest.mark.parametrize(
    ("says", "plugins", "pending"),
    [
        pytest.param({"permit": (NO, 0)}, {"A"}, set(), id="a rejection is the plugin's"),
        pytest.param({"permit": (PENDING, 0)}, {"A"}, {"A"}, id="one that waits for something is pending, too"),
        pytest.param({"permit": (BOOM, 0)}, set(), set(), id="an error has no plugin"),
        pytest.param({"pre_bind": NO}, set(), set(), id="nor is the result of PreBind"),
    ],
)
def test_the_rejecting_plugin_is_recorded_in_the_queue(
    says: dict[str, Any], plugins: set[str], pending: set[str]
) -> None:
    scheduler, _ = start(says)
    scheduler.schedule_one(0)
    queued = scheduler.queue.get("default/p")
    assert queued is not None
    assert (set(queued.unschedulable_plugins), set(queued.pending_plugins)) == (plugins, pending)


def test_plugins_reserve_in_order_and_all_unreserve_in_reverse_order() -> None:
    log: Log = []
    plugins = [make_recorder(name, log, {"reserve": NO} if name == "B" else {}) for name in "ABC"]
    scheduler = make_scheduler(*plugins, nodes=("n1",))
    scheduler.handle(None, make_pod("p").obj(), 0)
    scheduler.schedule_one(0)
    wanted = ["A.reserve", "B.reserve", "C.unreserve", "B.unreserve", "A.unreserve"]
    assert [entry for entry in points(log) if "reserve" in entry] == wanted


def test_bind_plugins_are_called_until_one_binds() -> None:
    log: Log = []
    plugins = [make_recorder(name, log, {"bind": SUCCESS} if name == "B" else {}) for name in "ABC"]
    scheduler = make_scheduler(*plugins, nodes=("n1",))
    scheduler.handle(None, make_pod("p").obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert as_tuples(report.actions) == [("bind", "p", "n1")]
    confirm(scheduler, "p", "n1", 0)
    assert points(log)[-5:] == ["A.bind", "B.bind", "A.post_bind", "B.post_bind", "C.post_bind"]


# No node is found.


@pytest.mark.parametrize(
    ("says", "want"),
    [
        pytest.param(
            {"refuses": ("n1", "n2")},
            ("0/2 nodes are available: 2 node(s) were refused.", "Unschedulable", "unschedulable"),
            id="all nodes are refused by a filter",
        ),
        pytest.param(
            {"pre_filter": NO},
            ("0/2 nodes are available: no.", "Unschedulable", "unschedulable"),
            id="PreFilter rejects",
        ),
        pytest.param(
            {"pre_filter": BOOM},
            ('running PreFilter plugin "A": boom', "SchedulerError", "backoff"),
            id="PreFilter fails",
        ),
        pytest.param(
            {"pre_filter": PENDING},
            ('running PreFilter plugin "A": later', "SchedulerError", "backoff"),
            id="PreFilter can't wait",
        ),
        pytest.param(
            {"pre_filter": PreFilterResult(node_names=frozenset())},
            ("0/2 nodes are available: node(s) didn't satisfy plugin A.", "Unschedulable", "unschedulable"),
            id="PreFilter leaves no node",
        ),
        pytest.param(
            {"pre_score": BOOM}, ('running PreScore plugin "A": boom', "SchedulerError", "backoff"), id="PreScore fails"
        ),
        pytest.param(
            {"scores": {"n2": 101}},
            (
                'applying score defaultWeights on Score plugins: plugin "A" returns an invalid score 101, '
                "it should in the range of [0, 100] after normalizing",
                "SchedulerError",
                "backoff",
            ),
            id="a score is out of range",
        ),
    ],
)
def test_a_failure_before_node_selection_is_reported_and_requeues_the_pod(
    says: dict[str, Any], want: tuple[str, str, str]
) -> None:
    message, reason, place = want
    scheduler, log = start(says)
    report = scheduler.schedule_one(SECOND)
    assert report is not None
    assert as_tuples(report.actions) == [
        ("event", "p", "Warning FailedScheduling Scheduling", message),
        ("condition", "p", reason, message),
    ]
    assert waits(scheduler) == {"p": place}
    assert scheduler.records[0].message == report.message == message
    assert not {"A.reserve", "A.unreserve"} & set(points(log))


def test_no_plugin_is_called_without_nodes() -> None:
    log: Log = []
    scheduler = make_scheduler(make_recorder("A", log), post_filter=True)
    scheduler.handle(None, make_pod("p").obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert as_tuples(report.actions)[1] == ("condition", "p", "Unschedulable", "no nodes available to schedule pods")
    assert set(points(log)) == {"A.pre_enqueue"}
    # No plugin rejected the pod, so it is tried again after its backoff.
    assert waits(scheduler) == {"p": "backoff"}


def test_long_event_notes_are_truncated_like_upstream() -> None:
    scheduler, _ = start({"pre_filter": unresolvable("x" * 2000)})
    report = scheduler.schedule_one(0)
    assert report is not None
    (event, condition) = as_tuples(report.actions)
    assert len(event[3]) == MAX_EVENT_NOTE
    assert event[3].endswith("x ...")
    assert condition[3] == "0/2 nodes are available: " + "x" * 2000 + "."


@pytest.mark.parametrize(
    ("answers", "message", "nominated"),
    [
        pytest.param(
            [(None, unschedulable("a")), (None, unschedulable("b"))],
            " a, b",
            None,
            id="texts of all that found nothing",
        ),
        pytest.param(
            [(PostFilterResult("n1"), SUCCESS), (None, unschedulable("b"))], "", "n1", id="the first that helps ends it"
        ),
        pytest.param(
            [(None, unresolvable("a")), (PostFilterResult("n1"), SUCCESS)],
            " a",
            None,
            id="an unresolvable result ends the search",
        ),
        pytest.param(
            [(None, error("a")), (PostFilterResult("n1"), SUCCESS)], " a", None, id="an error ends the search"
        ),
        pytest.param(
            [(None, unschedulable("a")), (PostFilterResult("n2"), SUCCESS)], "", "n2", id="a later one may help"
        ),
    ],
)
def test_post_filter_plugins_add_messages_and_can_nominate_a_node(
    answers: list[tuple[Any, Status]], message: str, nominated: str | None
) -> None:
    log: Log = []
    plugins = [
        make_recorder(name, log, {"refuses": ("n1", "n2"), "post_filter": answer})
        for name, answer in zip("AB", answers, strict=True)
    ]
    scheduler = make_scheduler(*plugins, nodes=("n1", "n2"), post_filter=True)
    scheduler.handle(None, make_pod("p").obj(), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    plain = "0/2 nodes are available: 2 node(s) were refused."
    assert report.message == plain + message
    assert next(entry for entry in log if entry[1] == "post_filter") == ("A", "post_filter", "p", plain)
    assert [action[2] for action in as_tuples(report.actions) if action[0] == "nominate"] == (
        [nominated] if nominated else []
    )
    assert scheduler.records[0].nominated_node == (nominated or "")


def test_victims_are_evicted_and_lower_nominations_cleared() -> None:
    victim = make_pod("v").node("n1").obj()
    lower = make_pod("lower").nominated("n1").obj()
    found = PostFilterResult("n1", ("default/v", "default/gone"), clears_nominations=True)
    log: Log = []
    scheduler = make_scheduler(
        make_recorder("A", log, {"refuses": ("n1",), "post_filter": (found, SUCCESS)}), post_filter=True
    )
    for item in (small_node("n1"), victim, make_pod("p").priority(1).obj(), lower):
        scheduler.handle(None, item, 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert as_tuples(report.actions)[2:] == [
        ("nominate", "p", "n1"),
        ("nominate", "lower", ""),
        ("evict", "v", "p", "n1"),
        ("event", "v", "Normal Preempted Preempting", "Preempted by pod default-p on node n1"),
    ]
    assert [*scheduler.queue.nominator.on_node("n1").values()] == ["default/p"]


# Pods that are not scheduled at all.


def test_a_terminating_pod_is_skipped() -> None:
    scheduler, log = start({})
    pod = make_pod("p").obj()
    scheduler.handle(pod, terminating(pod), 0)
    report = scheduler.schedule_one(0)
    assert report is not None
    assert report.outcome is Outcome.SKIPPED
    note = "skip schedule deleting pod: default/p"
    assert as_tuples(report.actions) == [("event", "p", "Warning FailedScheduling Scheduling", note)]
    assert points(log) == ["A.pre_enqueue"]
    assert waits(scheduler) == {}
    assert scheduler.queue.in_flight() == []


def terminating(pod: Pod) -> Pod:
    metadata = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="9")
    return replace(pod, metadata=metadata)


def test_a_gated_pod_is_scheduled_once_its_gate_opens() -> None:
    says: dict[str, Any] = {"pre_enqueue": unresolvable("gated")}
    log: Log = []
    recorder = make_recorder("A", log, says, [(NODE_ADD, None)])
    scheduler = make_scheduler(recorder, nodes=("n1",))
    scheduler.handle(None, make_pod("p").obj(), 0)
    assert scheduler.schedule_one(0) is None
    recorder.says.clear()
    scheduler.handle(None, small_node("n2"), 1)
    report = scheduler.schedule_one(1)
    assert report is not None
    assert report.outcome is Outcome.SCHEDULED
