"""Extenders in a scheduler, called in process: records, wake-ups, binding, and reading results back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bayplan.engine.actions import Bind, Emit
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import Outcome, RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.document import Extender as Declaration
from bayplan.framework.configuration.document import ExtenderManagedResource
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.extender import Extender
from bayplan.framework.extender_answers import ExtenderFailure
from bayplan.framework.feature_gates import FeatureGates
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing.builders import PodBuilder, make_node, make_pod

Says = Callable[[str, Mapping[str, Any]], object]


def scheduler_with(*extenders: tuple[Declaration, Says], nodes: int = 3) -> Scheduler:
    scheduler = assemble_scheduler(
        default_configuration(),
        in_tree_registry(),
        feature_gates=FeatureGates(),
        record_level=RecordLevel.FULL,
        extenders=[Extender(declared, says) for declared, says in extenders],
    )
    for number in range(nodes):
        scheduler.handle(None, make_node(f"n{number}").capacity(cpu="4", memory="8Gi").obj(), 0)
    return scheduler


def declared(name: str = "http://x", **verbs: Any) -> Declaration:
    return Declaration(url_prefix=name, node_cache_capable=True, **verbs)


def all_but(*names: str, **failed: str) -> Says:
    """Return a filter that excludes these nodes, some of them with a reason."""

    def says(verb: str, arguments: Mapping[str, Any]) -> object:
        gone = {*names, *failed}
        return {"NodeNames": [name for name in arguments["NodeNames"] if name not in gone], "FailedNodes": failed}

    return says


def refuses(verb: str, arguments: Mapping[str, Any]) -> object:
    raise ExtenderFailure("not today")


def schedule(scheduler: Scheduler, pod: PodBuilder) -> Any:
    scheduler.handle(None, pod.obj(), 0)
    return scheduler.schedule_one(0)


def test_a_record_contains_the_results_of_each_extender() -> None:
    def scores(verb: str, arguments: Mapping[str, Any]) -> object:
        return [{"Host": name, "Score": 7 if name == "n1" else 2} for name in arguments["NodeNames"]]

    scheduler = scheduler_with(
        (declared("http://f", filter_verb="f"), all_but("n2", n0="node(s) were n0")),
        (declared("http://s", prioritize_verb="s", weight=3), scores),
        nodes=4,
    )
    report = schedule(scheduler, make_pod("p").req(cpu="1"))
    decision = scheduler.records.decision(0)
    assert report.node_name == decision.record.node == "n1"
    assert decision.filters[-2:] == ("http://f", "http://s")
    assert decision.scorers[-1] == "http://s"
    assert decision.feasible.tolist() == [False, True, False, True]
    assert decision.raw[-1].tolist() == [0, 7, 0, 2]
    assert decision.weighted[-1].tolist() == [0, 210, 0, 60]
    assert decision.total.tolist() == [-1, int(decision.weighted[:, 1].sum()), -1, int(decision.weighted[:, 3].sum())]
    reported = [decision.first_failure(row) for row in range(4)]
    assert [None if status is None else (status.plugin, status.code.text, status.reasons) for status in reported] == [
        ("http://f", "Unschedulable", ("node(s) were n0",)),
        None,
        ("http://f", "UnschedulableAndUnresolvable", ()),
        None,
    ]
    first, second = decision.extenders
    assert (first.asked, first.scores, second.asked) == ((0, 1, 2, 3), None, ())
    assert decision.ran_on(len(decision.filters) - 2, 0)
    assert not decision.ran_on(len(decision.filters) - 1, 0)


def test_any_event_wakes_a_pod_rejected_by_an_extender() -> None:
    scheduler = scheduler_with((declared(filter_verb="f"), all_but(n0="no", n1="no", n2="no")))
    report = schedule(scheduler, make_pod("p"))
    assert report.outcome is Outcome.UNSCHEDULABLE
    assert report.message.startswith("0/3 nodes are available: 3 no. ")
    assert scheduler.queue.pop() is None
    second = 1_000_000_000
    scheduler.handle(None, make_pod("other").node("n0").obj(), 20 * second)
    assert scheduler.schedule_one(20 * second) is not None


@pytest.mark.parametrize(
    ("ignorable", "want"),
    [
        pytest.param(False, (Outcome.ERROR, "", "not today"), id="a failure ends the cycle"),
        pytest.param(True, (Outcome.SCHEDULED, "n", ""), id="a failure that is ignored does not"),
    ],
)
def test_a_failed_extender_filter_ends_the_cycle_unless_ignorable(
    ignorable: bool, want: tuple[Outcome, str, str]
) -> None:
    declaration = declared(filter_verb="f", ignorable=ignorable)
    scheduler = scheduler_with((declaration, refuses))
    report = schedule(scheduler, make_pod("p"))
    assert (report.outcome, report.node_name[:1], report.message) == want
    (said,) = scheduler.records.decision(0).extenders
    assert (said.filter_error, said.ignored) == ("not today", ignorable)


@pytest.mark.parametrize(
    ("answer", "bound", "error"),
    [
        pytest.param({}, "http://x", "", id="the extender binds"),
        pytest.param({"Error": "no"}, None, "no", id="it fails, and the pod is requeued"),
    ],
)
def test_a_binding_extender_gets_the_pod_and_its_failure_requeues_the_pod(
    answer: object, bound: str | None, error: str
) -> None:
    asked: list[Mapping[str, Any]] = []

    def binds(verb: str, arguments: Mapping[str, Any]) -> object:
        asked.append(arguments)
        return answer

    scheduler = scheduler_with((declared(bind_verb="bind"), binds), nodes=1)
    report = schedule(scheduler, make_pod("p").uid("u"))
    assert asked == [{"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n0"}]
    assert [action.extender for action in report.actions if isinstance(action, Bind)] == ([bound] if bound else [])
    notes = [action.note for action in report.actions if isinstance(action, Emit) and action.type == "Warning"]
    assert notes == ([error] if error else [])
    assert ("default/p" in scheduler.state.pods) is bool(bound)


def test_records_without_extenders_have_no_extender_data() -> None:
    scheduler = scheduler_with()
    schedule(scheduler, make_pod("p"))
    decision = scheduler.records.decision(0)
    assert decision.extenders == ()
    assert decision.preemption is None
    frame = scheduler.records.frame(0)
    assert frame is not None
    assert frame.extenders is None


def test_an_extender_without_interest_in_the_pod_is_not_called() -> None:
    def never(verb: str, arguments: Mapping[str, Any]) -> object:
        raise AssertionError("asked")

    managed = (ExtenderManagedResource(name="example.com/foo"),)
    scheduler = scheduler_with((declared(filter_verb="f", managed_resources=managed), never))
    assert schedule(scheduler, make_pod("p").req(cpu="1")).outcome is Outcome.SCHEDULED
