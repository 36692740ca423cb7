"""Selectors and tolerations compared with Kubernetes' results, tables of special cases, and naive implementations."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.plain_data import Document
from bayplan.objects.affinity import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Toleration,
)
from bayplan.objects.kinds import convert
from bayplan.objects.meta import LabelSelector, LabelSelectorRequirement
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    compile_label_map,
    compile_label_selector,
    compile_node_selector,
    compile_node_term,
    compile_preferred_terms,
    compile_required_node_affinity,
    compile_selector_document,
    find_untolerated_taint,
    parse_canonical_int64,
    parse_int64,
    quote,
    tolerates,
)
from tests.objects.golden.files import read_golden
from tests.oracle.selectors import matches_labels, matches_node, matches_requirement

# --- Kubernetes' own answers ---


def test_label_selectors_match_and_fail_like_upstream() -> None:
    """1,000 random selectors, each with a random set of labels."""
    for line in read_golden("label_selectors"):
        question, want = line["question"], line["want"]
        written = question["selector"]
        selector = None if written is None else convert(written, LabelSelector)
        try:
            compiled = compile_label_selector(selector)
        except SelectorError as problem:
            got: dict[str, object] = {"error": str(problem)}
        else:
            got = {"match": compiled.matches(question["labels"]), "everything": compiled.matches_everything}
        assert got == want, question


def test_node_affinity_matches_scores_and_fails_like_upstream() -> None:
    """1,000 random pods, each with a random node."""
    for line in read_golden("node_affinity"):
        question, want = line["question"], line["want"]
        pod, node = convert(question["pod"], Pod), convert(question["node"], Node)
        labels, name = node.metadata.labels, node.metadata.name
        required = compile_required_node_affinity(pod)
        got: dict[str, object] = {"match": required.matches(labels, name)}
        selects = required.labels is None or required.labels.matches(labels)
        if not got["match"] and selects and required.node_selector is not None and required.node_selector.error:
            got["error"] = required.node_selector.error
        assert pod.spec.affinity is not None
        assert pod.spec.affinity.node_affinity is not None
        preferred = compile_preferred_terms(
            pod.spec.affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
        )
        if preferred.error:
            got["preferredError"] = preferred.error
        else:
            got["score"] = preferred.score(labels, name)
        assert got == want, question


def test_tolerations_match_upstream() -> None:
    """1,000 random tolerations, each with a random taint."""
    for line in read_golden("tolerations"):
        question, want = line["question"], line["want"]
        toleration, taint = convert(question["toleration"], Toleration), convert(question["taint"], Taint)
        got = {
            "tolerates": tolerates(toleration, taint, comparison_operators=False),
            "toleratesComparison": tolerates(toleration, taint, comparison_operators=True),
        }
        assert got == want, question


# --- small scopes, enumerated ---

LABEL_SETS = [{}, {"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", "b": "x"}, {"a": "7", "b": ""}]


def small_requirements() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for key in ("a", "b"):
        yield key, "Exists", ()
        yield key, "DoesNotExist", ()
        for operator, values in product(("In", "NotIn"), (("1",), ("2", "1"), ("",), ("x", "x"))):
            yield key, operator, values
        for operator, value in product(("Gt", "Lt"), ("0", "1", "5")):
            yield key, operator, (value,)


SMALL_REQUIREMENTS = list(small_requirements())


def test_small_label_selectors_match_the_naive_rules() -> None:
    expressions = [
        LabelSelectorRequirement(key=key, operator=operator, values=values)
        for key, operator, values in SMALL_REQUIREMENTS
        if operator not in ("Gt", "Lt")
    ]
    for match_labels in ({}, {"a": "1"}, {"a": "1", "b": "x"}):
        for chosen in ((), *combinations(expressions, 1), *combinations(expressions, 2)):
            selector = LabelSelector(match_labels=match_labels, match_expressions=tuple(chosen))
            compiled = compile_label_selector(selector)
            for labels in LABEL_SETS:
                assert compiled.matches(labels) == matches_labels(selector, labels), (selector, labels)


def test_small_node_selectors_match_the_naive_rules() -> None:
    expressions = [
        NodeSelectorRequirement(key=key, operator=op, values=values) for key, op, values in SMALL_REQUIREMENTS
    ]
    fields = [
        NodeSelectorRequirement(key="metadata.name", operator=operator, values=("n1",)) for operator in ("In", "NotIn")
    ]
    terms = [NodeSelectorTerm(match_expressions=tuple(chosen)) for chosen in combinations(expressions, 1)]
    terms += [NodeSelectorTerm(match_fields=(item,)) for item in fields]
    terms += [NodeSelectorTerm(match_expressions=(expressions[0],), match_fields=(item,)) for item in fields]
    terms += [NodeSelectorTerm()]
    for chosen in ((), *combinations(terms, 1), *combinations(terms, 2)):
        selector = NodeSelector(node_selector_terms=tuple(chosen))
        compiled = compile_node_selector(selector)
        assert not compiled.error
        for labels, name in product(LABEL_SETS, ("n1", "n2")):
            assert compiled.matches(labels, name) == matches_node(selector, labels, name), (selector, labels, name)


def test_matches_and_matches_value_agree_with_the_naive_rules() -> None:
    for key, operator, values in SMALL_REQUIREMENTS:
        item = NodeSelectorRequirement(key=key, operator=operator, values=values)
        compiled = compile_node_selector(
            NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(item,)),))
        )
        labels_part = compiled.terms[0].labels
        assert labels_part is not None
        (requirement,) = labels_part.requirements
        for labels in LABEL_SETS:
            want = matches_requirement(item, labels)
            assert requirement.matches(labels) == want
            assert requirement.matches_value(labels.get(key)) == want


# --- corners ---


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert compile_label_selector(None) is NOTHING
    assert compile_label_selector(LabelSelector()) is EVERYTHING
    assert NOTHING.matches_nothing
    assert not NOTHING.matches_everything
    assert not NOTHING.matches({"a": "b"})
    assert EVERYTHING.matches_everything
    assert EVERYTHING.matches({})
    assert NOTHING != EVERYTHING


def test_compile_label_map_does_not_validate() -> None:
    assert compile_label_map({"not a key!": "not a value!"}).matches({"not a key!": "not a value!"})
    assert compile_label_map({}) is EVERYTHING
    assert compile_label_map(None) is EVERYTHING


def test_adding_requirements_to_nothing_still_matches_nothing() -> None:
    extra = (Requirement("a", "Exists"),)
    assert NOTHING.adding(extra) is NOTHING
    assert EVERYTHING.adding(extra).matches({"a": ""})
    assert not EVERYTHING.adding(extra).matches({})


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        pytest.param(
            [("a", "In", ("x", "y"))], [("a", "In", ("y", "x", "y"))], True, id="the order of values does not matter"
        ),
        pytest.param(
            [("a", "Exists", ()), ("b", "Exists", ())],
            [("b", "Exists", ()), ("a", "Exists", ()), ("a", "Exists", ())],
            True,
            id="neither does the order of requirements, nor repeats",
        ),
        pytest.param([("a", "In", ("x",))], [("a", "NotIn", ("x",))], False, id="operators matter"),
        pytest.param([("a", "In", ("x",))], [], False, id="requirements matter"),
    ],
)
def test_selectors_compare_by_meaning(
    one: list[tuple[str, str, tuple[str, ...]]], other: list[tuple[str, str, tuple[str, ...]]], want: bool
) -> None:
    first, second = (
        compile_label_selector(
            LabelSelector(
                match_expressions=tuple(
                    LabelSelectorRequirement(key=key, operator=operator, values=values)
                    for key, operator, values in requirements
                )
            )
        )
        for requirements in (one, other)
    )
    assert (first == second) == want
    assert (hash(first) == hash(second)) >= want


def test_match_labels_equals_a_single_value_in_expression() -> None:
    expression = LabelSelectorRequirement(key="a", operator="In", values=("x",))
    assert compile_label_selector(LabelSelector(match_labels={"a": "x"})) == compile_label_selector(
        LabelSelector(match_expressions=(expression,))
    )


def node_term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


def test_an_invalid_term_matches_nothing_but_other_terms_still_match() -> None:
    compiled = compile_node_selector(
        NodeSelector(node_selector_terms=(node_term("a", "Gt", "many"), node_term("a", "Exists")))
    )
    assert compiled.matches({"a": "1"}, "n")
    assert not compiled.matches({}, "n")
    assert compiled.error == (
        'nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "many": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    )


def test_an_invalid_preferred_term_discards_all_preferred_terms() -> None:
    compiled = compile_preferred_terms(
        (
            PreferredSchedulingTerm(weight=5, preference=node_term("a", "Exists")),
            PreferredSchedulingTerm(weight=5, preference=node_term("a", "Foo")),
        )
    )
    assert compiled.error == (
        '[1].matchExpressions[0].operator: Unsupported value: "Foo": '
        'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    )
    assert compiled.terms == ()


def test_a_preferred_term_of_weight_0_is_not_parsed() -> None:
    compiled = compile_preferred_terms((PreferredSchedulingTerm(weight=0, preference=node_term("a", "Foo")),))
    assert (compiled.error, compiled.score({"a": "b"}, "n")) == ("", 0)


def test_equal_node_selectors_have_equal_keys() -> None:
    one = compile_node_selector(
        NodeSelector(node_selector_terms=(node_term("a", "In", "x", "y"), node_term("b", "Exists")))
    )
    two = compile_node_selector(
        NodeSelector(node_selector_terms=(node_term("b", "Exists"), node_term("a", "In", "y", "x")))
    )
    three = compile_node_selector(NodeSelector(node_selector_terms=(node_term("b", "Exists"),)))
    assert one.key == two.key
    assert one.key != three.key
    assert hash(one.key) == hash(two.key)


@pytest.mark.parametrize(
    ("effects", "want"),
    [
        pytest.param({}, "c", id="by default, NoSchedule and NoExecute count"),
        pytest.param({"effects": ("PreferNoSchedule",)}, "a", id="other effects can be chosen"),
        pytest.param({"effects": ("NoSchedule",)}, None, id="all are tolerated"),
    ],
)
def test_find_untolerated_taint_returns_the_first_relevant_untolerated_taint(
    effects: dict[str, tuple[str, ...]], want: str | None
) -> None:
    pairs = (("a", "PreferNoSchedule"), ("b", "NoSchedule"), ("c", "NoExecute"), ("d", "NoExecute"))
    taints = [Taint(key=key, effect=effect) for key, effect in pairs]
    found = find_untolerated_taint(
        taints, (Toleration(key="b", operator="Exists"),), comparison_operators=False, **effects
    )
    assert (found and found.key) == want


@pytest.mark.parametrize(
    ("text", "want", "want_canonical"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("-7", -7, -7, id="a negative number"),
        pytest.param("+7", 7, None, id="a plus"),
        pytest.param("007", 7, None, id="leading zeros"),
        pytest.param("-0", 0, None, id="minus zero"),
        pytest.param("9223372036854775807", 2**63 - 1, 2**63 - 1, id="the largest int64"),
        pytest.param("9223372036854775808", None, None, id="one more"),
        pytest.param("-9223372036854775808", -(2**63), -(2**63), id="the smallest int64"),
        pytest.param("1_0", None, None, id="an underscore"),
        pytest.param(" 1", None, None, id="a space"),
        pytest.param("٣", None, None, id="a digit of another script"),
        pytest.param("", None, None, id="nothing"),
        pytest.param("9" * 5000, None, None, id="a number too long to convert"),
    ],
)
def test_integers_are_parsed_as_in_go(text: str, want: int | None, want_canonical: int | None) -> None:
    assert (parse_int64(text), parse_canonical_int64(text)) == (want, want_canonical)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param('a"b\\c', '"a\\"b\\\\c"', id="quotes and backslashes"),
        pytest.param("a\tb\x00\x7f", '"a\\tb\\x00\\x7f"', id="control characters"),
        pytest.param("é", '"é"', id="letters stay"),
        pytest.param("\u2028", '"\\u2028"', id="what can't be printed is escaped"),
    ],
)
def test_strings_are_quoted_as_in_go(text: str, want: str) -> None:
    assert quote(text) == want


# --- random ---

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "x", "y", "1", "2"])
EXPRESSIONS = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=KEYS,
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(VALUES, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(LabelSelectorRequirement, key=KEYS, operator=st.sampled_from(["Exists", "DoesNotExist"])),
)
SELECTORS = st.builds(
    LabelSelector,
    match_labels=st.dictionaries(KEYS, VALUES, max_size=2),
    match_expressions=st.lists(EXPRESSIONS, max_size=3).map(tuple),
)


@given(SELECTORS, st.lists(st.dictionaries(KEYS, VALUES), max_size=5))
def test_random_label_selectors_match_the_naive_rules(
    selector: LabelSelector, label_sets: list[dict[str, str]]
) -> None:
    compiled = compile_label_selector(selector)
    for labels in label_sets:
        assert compiled.matches(labels) == matches_labels(selector, labels)


@given(SELECTORS, SELECTORS, st.dictionaries(KEYS, VALUES))
def test_equal_selectors_match_the_same_labels(one: LabelSelector, two: LabelSelector, labels: dict[str, str]) -> None:
    first, second = compile_label_selector(one), compile_label_selector(two)
    if first == second:
        assert first.matches(labels) == second.matches(labels)
    assert Selector(reversed(first.requirements)) == first


@pytest.mark.parametrize(
    ("field", "operator", "values", "want"),
    [
        pytest.param("matchExpressions", "In", None, "null: for 'in', 'notin' operators", id="no list of values"),
        pytest.param("matchExpressions", "NotIn", (), "[]: for 'in', 'notin' operators", id="an empty list of values"),
        pytest.param("matchExpressions", "Gt", None, "null: for 'Gt', 'Lt' operators", id="nothing to compare with"),
        pytest.param("matchExpressions", "Lt", (), "[]: for 'Gt', 'Lt' operators", id="an empty list to compare with"),
        pytest.param("matchFields", "In", None, "null: must have one element", id="no name of a node"),
        pytest.param("matchFields", "In", (), "[]: must have one element", id="an empty list of names"),
    ],
)
def test_node_selector_errors_distinguish_missing_and_empty_value_lists(
    field: str, operator: str, values: tuple[str, ...] | None, want: str
) -> None:
    key = "metadata.name" if field == "matchFields" else "a"
    requirement = NodeSelectorRequirement(key=key, operator=operator, values=values)
    term = NodeSelectorTerm(
        match_expressions=(requirement,) if field == "matchExpressions" else (),
        match_fields=(requirement,) if field == "matchFields" else (),
    )
    (problem,) = compile_node_term(term, "here").errors
    assert problem.startswith(f"here.{field}[0].values: Invalid value: {want}")


def test_label_selector_errors_show_an_empty_value_list_as_null() -> None:
    expression = LabelSelectorRequirement(key="a", operator="In", values=())
    with pytest.raises(SelectorError, match="values: Invalid value: null: for 'in'"):
        compile_label_selector(LabelSelector(match_expressions=(expression,)))


@pytest.mark.parametrize(
    ("document", "labels", "want"),
    [
        pytest.param({}, {}, True, id="an empty selector matches everything"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True, id="a pair"),
        pytest.param({"matchLabels": {"a": "1"}}, {"a": "2"}, False, id="another value"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True, id="NotIn"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False, id="Exists"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Near"}]}, {"a": ""}, False, id="no such operator"),
    ],
)
def test_selector_documents_select_by_labels(document: Document, labels: dict[str, str], want: bool) -> None:
    assert compile_selector_document(document).matches(labels) is want
