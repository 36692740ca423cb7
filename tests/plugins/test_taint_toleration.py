"""TaintToleration: taints that reject, taints that lower the score, and numeric operators with their feature gate."""

import pytest

from bayplan.framework.events import HintAnswer
from bayplan.plugins.taint_toleration import REASON, TaintToleration
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import filters, normalized, scores

HARD = {"key": "k", "value": "v", "effect": "NoSchedule"}
EVICTING = {"key": "k", "value": "v", "effect": "NoExecute"}
SOFT = {"key": "k", "value": "v", "effect": "PreferNoSchedule"}
REJECTED = ("UnschedulableAndUnresolvable", (REASON,))


@pytest.mark.parametrize(
    ("taint", "toleration", "want"),
    [
        pytest.param(HARD, {}, "rejected", id="an empty toleration has the key of all and the value of none"),
        pytest.param(HARD, {"key": "k", "value": "v"}, "passed", id="no operator means Equal, no effect all effects"),
        pytest.param(HARD, {"key": "k", "value": "w"}, "rejected", id="another value"),
        pytest.param(HARD, {"key": "k", "operator": "Exists"}, "passed", id="Exists looks at no value"),
        pytest.param(HARD, {"key": "j", "operator": "Exists"}, "rejected", id="another key"),
        pytest.param(HARD, {"operator": "Exists", "effect": "NoExecute"}, "rejected", id="another effect"),
        pytest.param(EVICTING, {"operator": "Exists", "effect": "NoExecute"}, "passed", id="its effect, any key"),
        pytest.param(EVICTING, {"key": "x"}, "rejected", id="NoExecute rejects as well"),
        pytest.param(SOFT, {"key": "x"}, "passed", id="PreferNoSchedule rejects no pod"),
        pytest.param(HARD, {"key": "k", "operator": "Bogus", "value": "v"}, "rejected", id="an unknown operator"),
    ],
)
def test_filter_rejects_nodes_with_untolerated_taints(
    taint: dict[str, str], toleration: dict[str, str], want: str
) -> None:
    state = make_state([make_node("n1", taints=[taint])])
    found = filters(make_plugin(TaintToleration, state), make_pod(tolerations=[toleration]), state)
    assert found == ({"n1": REJECTED} if want == "rejected" else {})


@pytest.mark.parametrize(
    ("operator", "tolerated", "value", "gate", "want"),
    [
        pytest.param("Gt", "5", "6", True, "passed", id="Gt tolerates greater taints"),
        pytest.param("Gt", "5", "5", True, "rejected", id="but not an equal one"),
        pytest.param("Lt", "5", "-7", True, "passed", id="Lt tolerates smaller taints"),
        pytest.param("Lt", "5", "6", True, "rejected", id="but not a greater one"),
        pytest.param("Lt", "5", "4", False, "rejected", id="without the gate neither tolerates anything"),
        pytest.param("Gt", "5", "007", True, "rejected", id="a taint with a leading zero is not a number"),
        pytest.param("Gt", "+5", "9", True, "rejected", id="a toleration with a plus is not a number"),
        pytest.param("Lt", "0", "-0", True, "rejected", id="minus zero is not a number"),
        pytest.param("Gt", "1", "9223372036854775808", True, "rejected", id="a value outside int64 is not a number"),
        pytest.param("Lt", "9", "", True, "rejected", id="an empty value is not a number"),
    ],
)
def test_numeric_operators_compare_taint_values_if_the_gate_is_on(
    operator: str, tolerated: str, value: str, gate: bool, want: str
) -> None:
    state = make_state([make_node("n1", taints=[{"key": "k", "value": value, "effect": "NoSchedule"}])])
    plugin = make_plugin(TaintToleration, state, TaintTolerationComparisonOperators=gate)
    pod = make_pod(tolerations=[{"key": "k", "operator": operator, "value": tolerated}])
    assert filters(plugin, pod, state) == ({"n1": REJECTED} if want == "rejected" else {})


def test_scores_count_untolerated_soft_taints() -> None:
    other = {"key": "o", "effect": "PreferNoSchedule"}
    nodes = [make_node("n1"), make_node("n2", taints=[SOFT, HARD]), make_node("n3", taints=[SOFT, other, other])]
    state = make_state(nodes)
    plugin = make_plugin(TaintToleration, state)
    assert scores(plugin, make_pod(), state) == {"n1": 0, "n2": 1, "n3": 3}
    assert normalized(plugin, make_pod(), state) == {"n1": 100, "n2": 67, "n3": 0}
    tolerant = make_pod(tolerations=[{"key": "o", "operator": "Exists", "effect": "PreferNoSchedule"}])
    assert scores(plugin, tolerant, state) == {"n1": 0, "n2": 1, "n3": 1}


def test_all_nodes_score_100_without_soft_taints() -> None:
    state = make_state([make_node("n1"), make_node("n2", taints=[HARD])])
    assert normalized(make_plugin(TaintToleration, state), make_pod(), state) == {"n1": 100, "n2": 100}


def test_taint_tables_grow_with_new_taint_sets_and_are_separate_in_forks() -> None:
    state = make_state([make_node("n1")])
    plugin = make_plugin(TaintToleration, state)
    pod = make_pod()
    assert filters(plugin, pod, state) == {}
    fork = state.fork()
    state.add_node(make_node("n2", taints=[HARD]))
    fork.add_node(make_node("n2", taints=[SOFT]))
    assert filters(plugin, pod, state) == {"n2": REJECTED}
    assert filters(plugin, pod, fork) == {}
    assert scores(plugin, pod, fork) == {"n1": 0, "n2": 1}


def test_tolerations_with_different_seconds_share_results() -> None:
    state = make_state([])
    plugin = make_plugin(TaintToleration, state)
    long, short = (
        make_pod(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}])
        for seconds in (300, 1)
    )
    assert plugin.compile(long, state).key == plugin.compile(short, state).key


def test_score_without_pre_score_is_an_error() -> None:
    state = make_state([make_node("n1")])
    plugin = make_plugin(TaintToleration, state)
    spec = plugin.compile(make_pod(), state)
    assert plugin.score_error(spec, None) == 'failed to read "PreScoreTaintToleration" from cycleState: not found'
    assert plugin.score_error(spec, ()) == ""


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, make_node("n"), HintAnswer.QUEUE, id="a node without taints was added"),
        pytest.param(None, make_node("n", taints=[HARD]), HintAnswer.SKIP, id="a tainted node was added"),
        pytest.param(make_node("n", taints=[HARD]), make_node("n"), HintAnswer.QUEUE, id="a taint was removed"),
        pytest.param(make_node("n"), make_node("n"), HintAnswer.SKIP, id="there was no taint before either"),
        pytest.param(
            make_node("n", taints=[HARD]), make_node("n", taints=[EVICTING]), HintAnswer.SKIP, id="still tainted"
        ),
        pytest.param(make_pod(), make_pod(), HintAnswer.ERROR, id="not nodes"),
    ],
)
def test_node_hint_queues_if_the_pod_tolerates_the_node_now(old: object, new: object, want: HintAnswer) -> None:
    hint = make_plugin(TaintToleration, make_state([])).events_to_register()[0][1]
    assert hint is not None
    assert hint(make_pod(), old, new) is want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(make_pod("p"), HintAnswer.QUEUE, id="its own tolerations changed"),
        pytest.param(make_pod("q"), HintAnswer.SKIP, id="another pod's tolerations changed"),
        pytest.param(make_node("p"), HintAnswer.ERROR, id="not a pod"),
    ],
)
def test_pod_hint_queues_if_the_pods_own_tolerations_changed(new: object, want: HintAnswer) -> None:
    hint = make_plugin(TaintToleration, make_state([])).events_to_register()[1][1]
    assert hint is not None
    assert hint(make_pod("p"), make_pod("p") if not isinstance(new, type(make_node())) else None, new) is want
