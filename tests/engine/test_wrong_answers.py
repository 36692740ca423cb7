"""Plugins whose methods return a wrong value: the error names plugin, method, and the expected type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from bayplan.base.errors import PluginError
from bayplan.engine.records import Outcome
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    Params,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.framework.status import SUCCESS, Code, Status, unschedulable
from bayplan.library import Cluster
from bayplan.live.rule_results import check_first_results
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.columns import Columns
from bayplan.state.views import Rows
from bayplan.testing.builders import make_node, make_pod


@dataclass(frozen=True)
class Nothing:
    key: tuple[()] = ()


class SaysSuccess(PreFilterPlugin[Nothing]):
    def compile(self, pod: Pod, cluster: ClusterState) -> Nothing:
        return Nothing()

    def pre_filter(self, spec: Nothing, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        return SUCCESS


class SaysNothing(SaysSuccess):
    def pre_filter(self, spec: Nothing, cluster: ClusterState, state: CycleState) -> Any:
        return None


class ScoresWithSuccess(PreScorePlugin[Nothing], ScorePlugin[Nothing]):
    def compile(self, pod: Pod, cluster: ClusterState) -> Nothing:
        return Nothing()

    def pre_score(self, spec: Nothing, cluster: ClusterState, feasible: Bools) -> Params | Status:
        return SUCCESS

    def score(self, spec: Nothing, params: Params | None, rows: Rows) -> Ints:
        return np.zeros(len(rows), dtype=np.int64)


class ReturnsTheWrongRule(FilterRule):
    def __init__(self, columns: Columns, answer: Any) -> None:
        super().__init__(columns)
        self._answer = answer

    def filter(self, row: int) -> int:
        return self._answer  # type: ignore[no-any-return]


def plugin_with(base: type[Plugin[Any]], **answers: Any) -> type[Plugin[Any]]:
    """Return a class of plugins, each of whose methods returns the given value."""

    def returning(answer: Any) -> Any:
        return lambda self, *arguments: answer

    return type(
        "Wrong", (base,), {method: returning(answer) for method, answer in {"compile": Nothing(), **answers}.items()}
    )


def rule_with(answer: Any) -> type[Plugin[Any]]:
    made = plugin_with(FilterPlugin)
    made.filter_rule = lambda self, spec, cluster: ReturnsTheWrongRule(cluster.columns, answer)  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize(
    ("plugin", "want"),
    [
        pytest.param(
            SaysSuccess,
            "SaysSuccess.pre_filter: expected a PreFilterResult, or a Status that skips or rejects, got a Status of Success; "
            "try 'return PROCEED' (bayplan.framework.plugin) if the pod may proceed",
            id="PreFilter returns Success",
        ),
        pytest.param(SaysNothing, "SaysNothing.pre_filter: expected a PreFilterResult", id="PreFilter returns None"),
        pytest.param(
            ScoresWithSuccess,
            "ScoresWithSuccess.pre_score: expected params, or a Status that skips or fails, got a Status of Success; "
            "try 'return ()' if there are no params",
            id="PreScore returns Success",
        ),
        pytest.param(
            plugin_with(ReservePlugin, reserve=None, unreserve=None),
            "Wrong.reserve: expected a Status, got None; try 'return SUCCESS' (bayplan.framework.status)",
            id="Reserve returns None",
        ),
        pytest.param(
            plugin_with(PermitPlugin, permit=SUCCESS),
            "Wrong.permit: expected a pair of Status and timeout in nanoseconds, got a Status of Success; try 'return SUCCESS, 0'",
            id="Permit returns no timeout",
        ),
        pytest.param(
            plugin_with(PermitPlugin, permit=(Status(Code.WAIT), 1.5)),
            "Wrong.permit: expected a pair of Status and timeout in nanoseconds, got (Status(",
            id="Permit returns a timeout in seconds",
        ),
        pytest.param(
            plugin_with(PreBindPlugin, pre_bind="no"),
            "Wrong.pre_bind: expected a Status, got 'no'",
            id="PreBind returns a text",
        ),
        pytest.param(
            plugin_with(PreBindPlugin, pre_bind=SUCCESS, updates=["pod"]),
            "Wrong.updates: expected a list of Kubernetes objects, got ['pod']",
            id="a PreBind plugin wants to write a text",
        ),
        pytest.param(
            plugin_with(BindPlugin, bind=None), "Wrong.bind: expected a Status, got None", id="Bind returns None"
        ),
        pytest.param(
            plugin_with(PostFilterPlugin, post_filter=unschedulable("no")),
            "Wrong.post_filter: expected a pair of PostFilterResult (or None) and Status, got Status(",
            id="PostFilter returns only a Status",
        ),
        pytest.param(
            plugin_with(PreEnqueuePlugin, pre_enqueue=None),
            "Wrong.pre_enqueue: expected a Status, got None",
            id="PreEnqueue returns None",
        ),
        pytest.param(
            plugin_with(FilterPlugin, filter=0),
            "Wrong.filter: expected an array of 2 integers from 0 to 0xffff, got 0",
            id="Filter returns a number",
        ),
        pytest.param(
            plugin_with(FilterPlugin, filter=np.array([0, 1 << 16])),
            "Wrong.filter: expected an array of 2 integers from 0 to 0xffff, got array([    0, 65536])",
            id="Filter returns a verdict of more than 16 bits",
        ),
        pytest.param(
            plugin_with(FilterPlugin, filter=np.array([9, 9])),
            "Wrong.filter: expected 0, or a verdict in `texts`, got verdict 0x9",
            id="Filter returns an unknown verdict",
        ),
        pytest.param(
            plugin_with(FilterPlugin, filter=np.array([1, 1]), reasons="too slow"),
            "Wrong.reasons: expected a tuple of texts, got 'too slow'",
            id="reasons() returns a text",
        ),
        pytest.param(
            plugin_with(FilterPlugin, filter=np.array([1, 1]), compile=()),
            "Wrong.compile: expected a spec with a hashable attribute `key`, got ()",
            id="compile() returns a spec without a key",
        ),
        pytest.param(
            plugin_with(ScorePlugin, score=np.array([99.5, 1.0])),
            "Wrong.score: expected an array of 2 integers that fit int64, got array([99.5,  1. ])",
            id="Score returns fractions",
        ),
        pytest.param(
            plugin_with(ScorePlugin, score=np.array([1 << 63, 1], dtype=np.uint64)),
            "Wrong.score: expected an array of 2 integers that fit int64, got array([9223372036854775808,",
            id="Score returns a number above int64",
        ),
        pytest.param(
            plugin_with(FilterPlugin, filter=np.array([0, -1], dtype=np.int16)),
            "Wrong.filter: expected an array of 2 integers from 0 to 0xffff, got array([ 0, -1], dtype=int16)",
            id="Filter returns a negative verdict",
        ),
        pytest.param(
            plugin_with(QueueSortPlugin, sort_key=("x", 1.5)),
            "Wrong.sort_key: expected a tuple of integers, got ('x', 1.5)",
            id="QueueSort returns a key of a text and a fraction",
        ),
        pytest.param(
            plugin_with(FilterPlugin, filter_rule=None),
            "Wrong.filter_rule: expected a FilterRule, got None; try 'return super().filter_rule(spec, cluster)'",
            id="filter_rule() returns None",
        ),
        pytest.param(
            plugin_with(ScorePlugin, score_rule=None),
            "Wrong.score_rule: expected a ScoreRule, got None; try 'return super().score_rule(spec, cluster)'",
            id="score_rule() returns None",
        ),
        pytest.param(
            rule_with("no"),
            "Wrong.filter_rule: filter(): expected an integer, got 'no'",
            id="a rule returns a text",
        ),
        pytest.param(
            type("Wrong", (FilterPlugin,), {"filter": None}),
            "Wrong must define compile(pod, cluster)",
            id="compile() is missing",
        ),
    ],
)
def test_a_meaningless_plugin_result_raises_plugin_error(plugin: type[Plugin[Any]], want: str) -> None:
    nodes = [make_node(name).capacity(cpu="4").obj() for name in ("a", "b")]
    cluster = Cluster(nodes, plugins=[plugin])
    with pytest.raises(PluginError) as raised:
        cluster.schedule(make_pod("p").obj(), make_pod("q").req(cpu="9").obj())
    assert want in str(raised.value)


def test_a_constructor_that_does_not_call_that_of_its_base_is_refused() -> None:
    def start(self: Any, arguments: object, handle: object) -> None:
        self.limit = 3

    wrong = type("Wrong", (PerNodePlugin,), {"__init__": start, "filter_node": lambda self, pod, node: None})
    with pytest.raises(
        PluginError, match=r"plugin Wrong: expected an __init__ that calls that of its base class.*try 'super"
    ):
        Cluster([make_node("a").obj()], plugins=[wrong])


@pytest.mark.parametrize(
    ("base", "method", "function", "want"),
    [
        pytest.param(
            FilterPlugin,
            "compile",
            lambda self, pod: Nothing(),
            r"expected compile\(self, pod, cluster\), got compile\(self, pod\)",
            id="a parameter is missing",
        ),
        pytest.param(
            ScorePlugin,
            "score",
            lambda self, spec, rows, params, more: np.zeros(len(rows), dtype=np.int64),
            r"expected score\(self, spec, params, rows\), got score\(self, spec, rows, params, more\)",
            id="a parameter too many",
        ),
        pytest.param(
            PostBindPlugin, "post_bind", lambda self: None, r"expected post_bind\(self, state, pod", id="none"
        ),
    ],
)
def test_a_method_with_other_parameters_is_refused(base: Any, method: str, function: Any, want: str) -> None:
    wrong = type("Wrong", (base,), {"compile": lambda self, pod, cluster: Nothing(), method: function})
    with pytest.raises(PluginError, match=f"plugin Wrong: {want}"):
        Cluster([make_node("a").obj()], plugins=[wrong])


def test_an_attribute_instead_of_a_method_is_refused() -> None:
    wrong = type("Wrong", (ReservePlugin,), {"reserve": 5, "unreserve": lambda self, state, pod, node_name: None})
    with pytest.raises(PluginError, match=r"plugin Wrong\.reserve: expected a method, got 5"):
        Cluster([make_node("a").obj()], plugins=[wrong])


def test_a_method_may_be_called_with_keywords_and_have_more_parameters() -> None:
    class Delegates(ScorePlugin[Nothing], FilterPlugin[Nothing]):
        texts: ClassVar[dict[int, str]] = {1: "node(s) were full"}

        def compile(self, pod: Pod, cluster: ClusterState) -> Nothing:
            return Nothing()

        def filter(self, spec: Nothing, params: Params | None, rows: Rows, limit: int = 0) -> Codes:
            if limit:
                return rows.verdicts((rows.everywhere(True), limit))
            found = self.filter(spec, params, rows, 1)
            assert (found == self.filter(limit=1, spec=spec, params=params, rows=rows)).all()
            return found if spec.key else np.zeros(len(rows), np.uint16)

        def score(self, spec: Nothing, params: Params | None, rows: Rows, only: int = -1) -> Ints:
            if only < 0:
                return self.score(spec, params, rows=rows, only=1)
            return np.zeros(len(rows), np.int64)

    cluster = Cluster([make_node(name).capacity(cpu="4").obj() for name in "abc"], plugins=[Delegates])
    assert cluster.schedule(make_pod("p").obj())[0].record.outcome is Outcome.SCHEDULED


def test_a_result_of_a_call_with_keywords_is_checked() -> None:
    class Delegates(ScorePlugin[Nothing]):
        def compile(self, pod: Pod, cluster: ClusterState) -> Nothing:
            return Nothing()

        def score(self, spec: Nothing, params: Params | None, rows: Rows, only: int = -1) -> Ints:
            return self.score(spec, rows=rows, params=None, only=1) if only < 0 else np.zeros(9, np.int64)

    cluster = Cluster([make_node(name).capacity(cpu="4").obj() for name in "abc"], plugins=[Delegates])
    with pytest.raises(PluginError, match=r"Delegates\.score: expected an array of 3 integers that fit int64"):
        cluster.schedule(make_pod("p").obj())


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.int16, np.uint32, np.uint64])
def test_verdicts_may_have_any_type_of_integers(dtype: Any) -> None:
    members = {"filter": lambda self, spec, params, rows: np.ones(len(rows), dtype), "texts": {1: "node(s) were full"}}
    plugin = type("Right", (FilterPlugin,), {"compile": lambda self, pod, cluster: Nothing(), **members})
    cluster = Cluster([make_node("a").obj()], plugins=[plugin])
    assert "1 node(s) were full" in cluster.schedule(make_pod("p").obj())[0].record.message


def test_a_timeout_may_be_an_integer_of_numpy() -> None:
    plugin = plugin_with(PermitPlugin, permit=(Status(Code.WAIT), np.int64(10**9)))
    cluster = Cluster([make_node("a").capacity(cpu="4").obj()], plugins=[plugin])
    assert cluster.schedule(make_pod("p").obj())[0].record.outcome is Outcome.SCHEDULED


def test_a_static_method_has_no_parameter_self() -> None:
    methods = {"compile": staticmethod(lambda pod, cluster: Nothing()), "texts": {1: "node(s) were full"}}
    methods["filter"] = staticmethod(lambda spec, params, rows: rows.verdicts((rows.everywhere(True), 1)))
    cluster = Cluster([make_node("a").obj()], plugins=[type("Right", (FilterPlugin,), methods)])
    assert "1 node(s) were full" in cluster.schedule(make_pod("p").obj())[0].record.message


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Status(Code.WAIT, ("later",)), id="a code that is no verdict"),
        pytest.param(Status(Code.UNSCHEDULABLE, "text"), id="a text instead of a tuple"),  # type: ignore[arg-type]
        pytest.param(Status(Code.UNSCHEDULABLE, (3,)), id="a number as reason"),  # type: ignore[arg-type]
        pytest.param(Status(Code.UNSCHEDULABLE, ["x"]), id="a list of reasons"),  # type: ignore[arg-type]
        pytest.param(unschedulable(), id="no reason"),
    ],
)
def test_filter_node_with_a_meaningless_status_raises_plugin_error(answer: Status) -> None:
    wrong = type("Wrong", (PerNodePlugin,), {"filter_node": lambda self, pod, node: answer})
    with pytest.raises(PluginError, match=r"Wrong\.filter_node: expected None, a reason or a Status, got Status\("):
        Cluster([make_node("a").obj()], plugins=[wrong]).schedule(make_pod("p").obj())


def test_texts_that_are_not_strings_are_refused() -> None:
    wrong = type("Wrong", (FilterPlugin,), {"texts": {1: ("a", "b")}})
    with pytest.raises(PluginError, match=r"Wrong\.texts: expected a mapping of verdicts to texts, got \{1: "):
        Cluster([make_node("a").obj()], plugins=[wrong])


def test_an_exception_of_a_rule_is_raised_unchanged() -> None:
    class Raises(FilterRule):
        def filter(self, row: int) -> int:
            raise TypeError("mine")

    plugin: Any = plugin_with(FilterPlugin)
    plugin.filter_rule = lambda self, spec, cluster: Raises(cluster.columns)
    with pytest.raises(TypeError, match="mine"):
        Cluster([make_node("a").obj()], plugins=[plugin]).schedule(make_pod("p").obj())


def rule_that_returns(base: type[Any], **results: Any) -> type[Any]:
    """Return a rule whose methods return these results for the second row, and 1 for others."""

    def method(result: Any) -> Any:
        return lambda self, *arguments: result if arguments[-1] == 1 else 1

    return type("Mine", (base,), {name: method(result) for name, result in results.items()})


@pytest.mark.parametrize(
    ("base", "plugin", "results", "want"),
    [
        pytest.param(
            FilterRule,
            FilterPlugin,
            {"filter": 0.7},
            r"Wrong\.filter_rule: filter\(\): expected an integer, got 0.7",
            id="a verdict",
        ),
        pytest.param(
            ScoreRule,
            ScorePlugin,
            {"score": 50.7},
            r"Wrong\.score_rule: score\(\): expected an integer, got 50.7",
            id="a score",
        ),
        pytest.param(
            ScoreRule,
            ScorePlugin,
            {"score": np.float64(3)},
            r"Wrong\.score_rule: score\(\): expected an integer",
            id="a number of NumPy",
        ),
    ],
)
def test_a_rule_that_returns_no_integer_for_some_node_raises_plugin_error(
    base: Any, plugin: Any, results: dict[str, Any], want: str
) -> None:
    rule, made = rule_that_returns(base, **results), plugin_with(plugin)
    for method in ("filter_rule", "score_rule"):
        setattr(made, method, lambda self, spec, cluster: rule(cluster.columns))
    cluster = Cluster([make_node(name).obj() for name in "abc"], plugins=[made])
    with pytest.raises(PluginError, match=want):
        cluster.schedule(make_pod("p").obj())


def rule_of(made: type[Any]) -> Any:
    """Return a rule for a cluster of three nodes."""
    cluster = Cluster([make_node(name).obj() for name in "abc"])
    return made(cluster.scheduler.state.columns)


def test_the_check_of_a_rule_removes_itself_after_as_many_calls_as_there_are_nodes() -> None:
    rule = rule_of(rule_that_returns(ScoreRule, score=np.int16(2)))
    check_first_results(rule, "Wrong")
    for row in range(3):
        assert "score" in vars(rule)
        assert rule.score(row) == (2 if row == 1 else 1)
    assert "score" not in vars(rule)


def test_a_rule_that_is_returned_again_is_checked_once() -> None:
    rule = rule_of(rule_that_returns(FilterRule, filter=0))
    check_first_results(rule, "Wrong")
    check = vars(rule)["filter"]
    check_first_results(rule, "Wrong")
    assert vars(rule)["filter"] is check


def test_a_checked_rule_accepts_keyword_arguments() -> None:
    class Even(FilterRule):
        def filter(self, row: int) -> int:
            return row % 2

    rule = rule_of(Even)
    check_first_results(rule, "Even")
    assert rule.filter(row=1) == 1
