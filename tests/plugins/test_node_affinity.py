"""NodeAffinity: required and preferred terms, names of nodes, invalid terms, and affinity from the configuration."""

import pytest

from bayplan.base.errors import ConfigurationError
from bayplan.framework.configuration.plugin_arguments import NodeAffinityArgs
from bayplan.framework.events import HintAnswer
from bayplan.framework.plugin import PROCEED, PreFilterResult
from bayplan.framework.status import SKIP, Status, error, unresolvable
from bayplan.objects.pod import Pod
from bayplan.plugins.node_affinity import REASON_CONFLICT, REASON_ENFORCED, REASON_POD, NodeAffinity
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import filters, normalized, pre_filter, scores, skips_score

NODES = [
    make_node("n1", labels={"zone": "a", "size": "10"}),
    make_node("n2", labels={"zone": "b", "size": "007"}),
    make_node("n3", labels={"size": "x"}),
]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
Requirement = dict[str, object]
Term = dict[str, list[Requirement]]


def expression(key: str, operator: str, *values: str) -> Requirement:
    return {"key": key, "operator": operator, "values": list(values)}


def labels(*requirements: Requirement) -> Term:
    return {"matchExpressions": list(requirements)}


def names(*requirements: Requirement) -> Term:
    return {"matchFields": list(requirements)}


def named(*values: str) -> Requirement:
    return expression("metadata.name", "In", *values)


def requiring(*terms: Term) -> Pod:
    return make_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def preferring(*terms: tuple[int, Term]) -> Pod:
    written = [{"weight": weight, "preference": term} for weight, term in terms]
    return make_pod(affinity={"nodeAffinity": {PREFERRED: written}})


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([labels(expression("zone", "In", "a", "c"))], "n1", id="In: one of the values"),
        pytest.param([labels(expression("zone", "NotIn", "a"))], "n2 n3", id="NotIn: also without the key"),
        pytest.param([labels(expression("zone", "Exists"))], "n1 n2", id="Exists: with the key"),
        pytest.param([labels(expression("zone", "DoesNotExist"))], "n3", id="DoesNotExist: without the key"),
        pytest.param([labels(expression("size", "Gt", "7"))], "n1", id="Gt: numbers that are greater"),
        pytest.param([labels(expression("size", "Lt", "8"))], "n2", id="Lt: numbers may have leading zeros"),
        pytest.param([labels(expression("zone", "Exists"), expression("size", "Lt", "8"))], "n2", id="all of a term"),
        pytest.param(
            [labels(expression("zone", "In", "a")), labels(expression("zone", "In", "b"))], "n1 n2", id="any term"
        ),
        pytest.param([], "", id="no term matches nothing"),
        pytest.param([{}], "", id="an empty term matches nothing"),
        pytest.param([names(named("n2"))], "n2", id="a name"),
        pytest.param([names(expression("metadata.name", "NotIn", "n2"))], "n1 n3", id="all names but one"),
        pytest.param(
            [{**names(named("n2")), **labels(expression("zone", "In", "a"))}], "", id="name and labels together"
        ),
        pytest.param([names(expression("metadata.namespace", "In", ""))], "n1 n2 n3", id="an unknown field is empty"),
        pytest.param([labels(expression("zone", "Is", "a"))], "", id="a term with a mistake matches nothing"),
        pytest.param([labels(expression("zone", "Is")), names(named("n1"))], "n1", id="and leaves the others alone"),
        pytest.param([names(named("n1", "n2"))], "", id="two names in one requirement are a mistake"),
    ],
)
def test_required_terms_select_nodes(terms: list[Term], want: str) -> None:
    state = make_state(NODES)
    found = filters(make_plugin(NodeAffinity, state), requiring(*terms), state)
    assert [name for name in ("n1", "n2", "n3") if name not in found] == want.split()
    assert set(found.values()) <= {("UnschedulableAndUnresolvable", (REASON_POD,))}


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param({"zone": "a"}, "n1", id="a label"),
        pytest.param({"zone": "a", "size": "10"}, "n1", id="all labels"),
        pytest.param({"zone": "a", "size": "x"}, "", id="not just one of them"),
        pytest.param({"none": ""}, "", id="an empty value is not an absent key"),
        pytest.param({}, "n1 n2 n3", id="an empty selector allows all"),
    ],
)
def test_node_selector_requires_all_labels(selector: dict[str, str], want: str) -> None:
    state = make_state(NODES)
    plugin = make_plugin(NodeAffinity, state)
    pod = make_pod(nodeSelector=selector)
    assert pre_filter(plugin, pod, state) == PROCEED
    found = filters(plugin, pod, state)
    assert [name for name in ("n1", "n2", "n3") if name not in found] == want.split()


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(), SKIP, id="a pod without requirements skips the filter"),
        pytest.param(preferring((1, labels())), SKIP, id="a pod with only preferences skips the filter"),
        pytest.param(requiring(names(named("n1"))), PreFilterResult(node_names=frozenset({"n1"})), id="one name"),
        pytest.param(
            requiring(names(named("n1")), names(named("zz"))),
            PreFilterResult(node_names=frozenset({"n1", "zz"})),
            id="names of all terms, whether they exist or not",
        ),
        pytest.param(
            requiring(names(named("n1")), labels(expression("zone", "Exists"))), PROCEED, id="a term without a name"
        ),
        pytest.param(
            requiring(names(named("n1"), named("n2"))), unresolvable(REASON_CONFLICT), id="names that conflict"
        ),
        pytest.param(
            requiring(names(named("n1"), named("n2")), names(named("n3"))),
            PreFilterResult(node_names=frozenset({"n3"})),
            id="a conflict in one of two terms",
        ),
        pytest.param(requiring(), PROCEED, id="no terms"),
    ],
)
def test_pre_filter_returns_the_names_that_terms_require(pod: Pod, want: PreFilterResult | Status) -> None:
    state = make_state(NODES)
    assert pre_filter(make_plugin(NodeAffinity, state), pod, state) == want


@pytest.mark.parametrize(
    ("terms", "want", "want_normalized"),
    [
        pytest.param([(5, labels(expression("zone", "In", "a")))], [5, 0, 0], [100, 0, 0], id="one term"),
        pytest.param(
            [(5, labels(expression("zone", "Exists"))), (2, labels(expression("size", "Gt", "8")))],
            [7, 5, 0],
            [100, 71, 0],
            id="weights add up",
        ),
        pytest.param([(0, labels(expression("zone", "Is")))], [0, 0, 0], [0, 0, 0], id="a weight of 0 is ignored"),
        pytest.param([(9, {})], [0, 0, 0], [0, 0, 0], id="an empty term matches nothing"),
        pytest.param([], [0, 0, 0], [0, 0, 0], id="an empty list"),
        pytest.param([(3, names(named("n3")))], [0, 0, 3], [0, 0, 100], id="a name"),
        pytest.param([(-3, names(named("n3")))], [0, 0, -3], [0, 0, -3], id="negative sums stay if none is positive"),
        pytest.param(
            [(-3, names(named("n3"))), (2, names(named("n1")))],
            [2, 0, -3],
            [100, 0, -150],
            id="negative sums are scaled if one is positive",
        ),
    ],
)
def test_preferred_terms_add_up_and_are_normalized(
    terms: list[tuple[int, Term]], want: list[int], want_normalized: list[int]
) -> None:
    state = make_state(NODES)
    plugin = make_plugin(NodeAffinity, state)
    assert list(scores(plugin, preferring(*terms), state).values()) == want
    assert list(normalized(plugin, preferring(*terms), state).values()) == want_normalized


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(), True, id="no affinity"),
        pytest.param(requiring(labels(expression("zone", "Exists"))), True, id="only required terms"),
        pytest.param(preferring(), False, id="an empty list of preferred terms is something"),
        pytest.param(preferring((1, labels(expression("zone", "Exists")))), False, id="a preferred term"),
    ],
)
def test_the_score_is_skipped_without_preferred_terms(pod: Pod, want: bool) -> None:
    state = make_state(NODES)
    assert skips_score(make_plugin(NodeAffinity, state), pod, state) is want


def test_an_invalid_preferred_term_ends_the_cycle() -> None:
    state = make_state(NODES)
    plugin = make_plugin(NodeAffinity, state)
    spec = plugin.compile(preferring((1, labels(expression("zone", "Exists"))), (1, names(named("a", "b")))), state)
    text = '[1].matchFields[0].values: Invalid value: ["a","b"]: must have one element'
    assert plugin.pre_score(spec, state, state.nodes.alive[:3]) == error(text)
    assert plugin.score_error(spec, None) == text
    assert plugin.score_error(spec, ()) == ""


def arguments(required: list[Term], preferred: list[tuple[int, Term]]) -> NodeAffinityArgs:
    affinity: dict[str, object] = {}
    if required:
        affinity[REQUIRED] = {"nodeSelectorTerms": required}
    if preferred:
        affinity[PREFERRED] = [{"weight": weight, "preference": term} for weight, term in preferred]
    pod = make_pod(affinity={"nodeAffinity": affinity})
    assert pod.spec.affinity is not None
    return NodeAffinityArgs(added_affinity=pod.spec.affinity.node_affinity)


def test_added_affinity_applies_to_all_pods_and_is_reported_first() -> None:
    state = make_state(NODES)
    plugin = make_plugin(NodeAffinity, state, arguments([labels(expression("zone", "Exists"))], []))
    assert pre_filter(plugin, make_pod(), state) == PROCEED
    enforced = ("UnschedulableAndUnresolvable", (REASON_ENFORCED,))
    assert filters(plugin, make_pod(), state) == {"n3": enforced}
    own = ("UnschedulableAndUnresolvable", (REASON_POD,))
    assert filters(plugin, make_pod(nodeSelector={"zone": "a"}), state) == {"n2": own, "n3": enforced}
    assert skips_score(plugin, make_pod(), state)


def test_added_preferred_terms_add_to_the_pods_own() -> None:
    state = make_state(NODES)
    plugin = make_plugin(NodeAffinity, state, arguments([], [(10, labels(expression("zone", "Exists")))]))
    assert not skips_score(plugin, make_pod(), state)
    assert scores(plugin, preferring((5, names(named("n1")))), state) == {"n1": 15, "n2": 10, "n3": 0}


@pytest.mark.parametrize(
    ("required", "preferred", "want"),
    [
        pytest.param(
            [labels(expression("zone", "Is"))],
            [],
            "parsing addedAffinity.requiredDuringSchedulingIgnoredDuringExecution: "
            'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Is"',
            id="required",
        ),
        pytest.param(
            [],
            [(1, names(expression("metadata.name", "Exists")))],
            "parsing addedAffinity.preferredDuringSchedulingIgnoredDuringExecution: "
            '[0].matchFields[0].operator: Unsupported value: "Exists"',
            id="preferred",
        ),
    ],
)
def test_an_invalid_added_affinity_is_refused(
    required: list[Term], preferred: list[tuple[int, Term]], want: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        make_plugin(NodeAffinity, make_state([]), arguments(required, preferred))
    assert str(raised.value).startswith(want)


def test_pods_with_equivalent_terms_share_results() -> None:
    state = make_state(NODES)
    plugin = make_plugin(NodeAffinity, state)
    one = requiring(labels(expression("zone", "In", "a", "b"), expression("size", "Exists")))
    other = requiring(labels(expression("size", "Exists"), expression("zone", "In", "b", "a")))
    assert plugin.compile(one, state).key == plugin.compile(other, state).key
    assert plugin.compile(one, state).key != plugin.compile(make_pod(), state).key
    assert plugin.compile(make_pod(), state).key != plugin.compile(make_pod(nodeSelector={}), state).key


MATCHING, OTHER = make_node("n", labels={"zone": "a"}), make_node("n", labels={"zone": "b"})
IN_A = requiring(labels(expression("zone", "In", "a")))
BROKEN = requiring(labels(expression("zone", "Is")))


@pytest.mark.parametrize(
    ("pod", "old", "new", "want"),
    [
        pytest.param(IN_A, None, MATCHING, HintAnswer.QUEUE, id="a matching node was added"),
        pytest.param(IN_A, None, OTHER, HintAnswer.SKIP, id="a non-matching node was added"),
        pytest.param(IN_A, OTHER, MATCHING, HintAnswer.QUEUE, id="a node matches now"),
        pytest.param(IN_A, MATCHING, MATCHING, HintAnswer.SKIP, id="it matched before"),
        pytest.param(IN_A, MATCHING, OTHER, HintAnswer.SKIP, id="it does not match any more"),
        pytest.param(BROKEN, None, MATCHING, HintAnswer.ERROR, id="only terms with mistakes"),
        pytest.param(make_pod(), None, OTHER, HintAnswer.QUEUE, id="a pod that fits on any node"),
        pytest.param(IN_A, None, make_pod(), HintAnswer.ERROR, id="not a node"),
    ],
)
def test_node_hint_queues_if_the_node_matches_now(pod: Pod, old: object, new: object, want: HintAnswer) -> None:
    hint = make_plugin(NodeAffinity, make_state([])).events_to_register()[0][1]
    assert hint is not None
    assert hint(pod, old, new) is want


def test_node_hint_considers_added_affinity() -> None:
    plugin = make_plugin(NodeAffinity, make_state([]), arguments([labels(expression("disk", "Exists"))], []))
    hint = plugin.events_to_register()[0][1]
    assert hint is not None
    assert hint(IN_A, None, MATCHING) is HintAnswer.SKIP
    assert hint(IN_A, None, make_node("n", labels={"zone": "a", "disk": "ssd"})) is HintAnswer.QUEUE
