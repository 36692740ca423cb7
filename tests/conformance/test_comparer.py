"""The comparer: strict if the data is exact, lenient only if the data is ambiguous."""

import copy
import importlib.util
import random
from collections.abc import Callable
from types import ModuleType
from typing import cast

import pytest

from bayplan.conformance.answers import Answer
from bayplan.conformance.cases import Json, JsonObject, RecordedCase, read_case_files
from bayplan.conformance.comparer import FOLLOWED, Comparison, compare, differ, same_decoding_error
from tests.conformance.recorded import answered, at, placed_cycle, preempting_cycle, put, recorded
from tests.shared import recording

Path = tuple[str | int, ...]


def changed(case: RecordedCase, path: Path, new: Json) -> Comparison:
    answer = answered(case)
    put(answer.body, ("cycles", *path), new)
    return compare(case, answer)


@pytest.mark.parametrize("cycles", [[placed_cycle()], [preempting_cycle()], [placed_cycle(), preempting_cycle()]])
def test_a_recorded_answer_agrees_with_itself(cycles: list[JsonObject]) -> None:
    case = recorded(*cycles)
    comparison = compare(case, answered(case))
    assert comparison.differences == []
    assert all(tally.checks == tally.agreed > 0 for tally in comparison.parts.values())
    assert comparison.parts[FOLLOWED].checks == len(cycles)


PLACED_CHANGES: list[tuple[str, Path, Json, str]] = [
    ("another raw score", ("scores", "NodeResourcesFit", "raw", "n1"), 38, "scores"),
    ("another normalised score", ("scores", "TaintToleration", "normalized", "n2"), 99, "scores"),
    ("a score as a float", ("scores", "NodeResourcesFit", "raw", "n1"), 37.0, "scores"),
    ("another weight", ("scores", "NodeResourcesFit", "weight"), 2, "scores"),
    ("a weight of true", ("scores", "NodeResourcesFit", "weight"), True, "scores"),
    ("another total", ("total", "n1"), 338, "total"),
    ("one best node fewer", ("best",), ["n1"], "best"),
    ("one best node more", ("best",), ["n1", "n2", "n3"], "best"),
    ("a best node twice", ("best",), ["n1", "n1", "n2"], "best"),
    ("another member of best", ("chosen",), "n2", "chosen"),
    ("no choice", ("chosen",), None, "chosen"),
    ("another code", ("filter", "n3", "code"), "UnschedulableAndUnresolvable", "filter"),
    ("another reason", ("filter", "n3", "reasons", 0), "Insufficient CPU", "filter"),
    ("a reason fewer", ("filter", "n3", "reasons"), ["Insufficient cpu"], "filter"),
    (
        "a reason twice",
        ("filter", "n3", "reasons"),
        ["Insufficient cpu", "Insufficient cpu", "Insufficient memory"],
        "filter",
    ),
    ("another plugin", ("filter", "n3", "plugin"), "TaintToleration", "filter"),
    ("a failure too many", ("filter", "n2"), {"plugin": "X", "code": "Unschedulable", "reasons": []}, "filter"),
    ("no failure", ("filter",), {}, "filter"),
    ("another plugin alone", ("filterAll",), {"NodeName": {"n3": {"code": "Unschedulable"}}}, "filterAll"),
    ("a plugin that fails nowhere", ("filterAll", "NodeName"), {}, "filterAll"),
    ("another order of feasible nodes", ("feasible",), ["n2", "n1"], "feasible"),
    ("another PreFilter code", ("preFilter", "code"), "Skip", "preFilter"),
    ("an empty node set for none", ("preFilter", "nodeNames"), [], "preFilter"),
    ("a PreFilter that is not skipped", ("preFilterSkipped",), [], "preFilterSkipped"),
    ("a skip too many", ("preScoreSkipped",), ["NodeAffinity"], "preScoreSkipped"),
    ("a message", ("message",), "0/3 nodes are available", "message"),
    ("an empty message", ("message",), "", "message"),
    ("a preemption", ("preemption",), {"code": "Unschedulable", "reasons": [], "candidates": {}}, "preemption"),
    ("an unknown part", ("reserved",), {"volumes": {"default/c": "pv"}}, "reserved"),
    ("another pod", ("pod",), "default/other", "pod"),
]


@pytest.mark.parametrize(
    ("path", "new", "want"), [each[1:] for each in PLACED_CHANGES], ids=[c[0] for c in PLACED_CHANGES]
)
def test_any_changed_placement_value_is_a_difference(path: Path, new: Json, want: str) -> None:
    comparison = changed(recorded(placed_cycle()), (0, *path), new)
    assert {each.part for each in comparison.differences} == {want}
    assert comparison.parts[want].agreed == 0


PREEMPTION_CHANGES: list[tuple[str, Path, Json, str]] = [
    ("another code", ("code",), "Unschedulable", "code"),
    ("another reason", ("reasons", 0), "still not schedulable", "reasons"),
    ("reasons in another order", ("reasons",), ["b", "a"], "reasons"),
    ("a candidate fewer", ("candidates",), {"n1": {}, "n2": {}}, "candidates"),
    ("another victim", ("candidates", "n2", "victims", 0), "default/twin-a", "victims"),
    ("a victim fewer", ("candidates", "n1", "victims"), ["default/high", "default/twin-a"], "victims"),
    ("unequal victims in another order", ("candidates", "n1", "victims"), None, "victims"),
    ("another number of violated budgets", ("candidates", "n3", "numPDBViolations"), 0, "victims"),
    ("a node that is not among the best", ("nominatedNode",), "n3", "nominatedNode"),
    ("no node", ("nominatedNode",), None, "nominatedNode"),
    ("another victim on the nominated node", ("victims", 0), "default/other", "victims"),
    ("no victims", ("victims",), [], "victims"),
]


@pytest.mark.parametrize(
    ("path", "new", "want"), [each[1:] for each in PREEMPTION_CHANGES], ids=[c[0] for c in PREEMPTION_CHANGES]
)
def test_any_changed_preemption_value_is_a_difference(path: Path, new: Json, want: str) -> None:
    cycle = preempting_cycle()
    if want == "reasons":
        put(cycle, ("preemption", "reasons"), ["a", "b"])
    if path == ("candidates", "n1", "victims") and new is None:
        new = ["default/twin-a", "default/high", "default/twin-b"]
    comparison = changed(recorded(cycle), (0, "preemption", *path), new)
    assert {each.part for each in comparison.differences} == {"preemption"}
    assert comparison.parts[f"preemption/{want}"].agreed == 0


def swap_twins(answer: JsonObject) -> None:
    victims: Json = ["default/high", "default/twin-b", "default/twin-a"]
    put(answer, ("cycles", 0, "preemption", "candidates", "n1", "victims"), victims)
    put(answer, ("cycles", 0, "preemption", "victims"), victims)


def nominate_another_node(answer: JsonObject) -> None:
    put(answer, ("cycles", 0, "preemption", "nominatedNode"), "n2")
    put(answer, ("cycles", 0, "preemption", "victims"), ["default/other"])


def reverse_reasons(answer: JsonObject) -> None:
    put(answer, ("cycles", 0, "filter", "n1", "reasons"), ["Insufficient memory", "Insufficient cpu"])
    put(
        answer,
        ("cycles", 0, "filterAll", "NodeResourcesFit", "n2", "reasons"),
        ["Insufficient memory", "Insufficient cpu"],
    )


def set_candidate_ambiguity(answer: JsonObject) -> None:
    put(answer, ("cycles", 0, "preemption", "candidates", "n1", "ambiguous"), False)


def omit_empty_parts(answer: JsonObject) -> None:
    cycle = at(answer, "cycles", 0)
    assert isinstance(cycle, dict)
    cycle["reserved"] = {}
    cycle["nominated"] = None
    del cycle["best"]


LOOSENINGS: list[tuple[str, Callable[[JsonObject], None]]] = [
    ("victims of one rank may change places", swap_twins),
    ("any of the equal nodes may be nominated", nominate_another_node),
    ("the reasons of a filter have no order", reverse_reasons),
    ("more may be said about a candidate", set_candidate_ambiguity),
    ("an empty part may be left out", omit_empty_parts),
]


@pytest.mark.parametrize("change", [each[1] for each in LOOSENINGS], ids=[each[0] for each in LOOSENINGS])
def test_variations_that_the_recording_allows_agree(change: Callable[[JsonObject], None]) -> None:
    case = recorded(preempting_cycle())
    answer = answered(case)
    change(answer.body)
    assert compare(case, answer).differences == []


def test_dry_run_errors_agree_in_any_order_but_not_with_other_texts() -> None:
    cycle = preempting_cycle()
    put(cycle, ("preemption", "reasons"), ["preemption: [claim a, request r: b, claim c]"])
    put(cycle, ("message",), "0/2 nodes are available: 2 Too many pods. preemption: [claim a, request r: b, claim c]")
    case = recorded(cycle)
    answer = answered(case)
    turned = "preemption: [claim c, claim a, request r: b]"
    put(answer.body, ("cycles", 0, "preemption", "reasons"), [turned])
    put(answer.body, ("cycles", 0, "message"), f"0/2 nodes are available: 2 Too many pods. {turned}")
    assert compare(case, answer).differences == []
    put(answer.body, ("cycles", 0, "preemption", "reasons"), [turned.replace("claim c", "claim d")])
    put(answer.body, ("cycles", 0, "message"), "0/2 nodes are available: 2 Too many pods. preemption: [claim a]")
    assert {each.part for each in compare(case, answer).differences} == {"preemption", "message"}


def test_a_different_nominated_node_needs_its_own_victims() -> None:
    comparison = changed(recorded(preempting_cycle()), (0, "preemption", "nominatedNode"), "n2")
    assert [each.where for each in comparison.differences] == ["cycle 0 default/urgent victims"]


def test_best_nodes_agree_in_any_order() -> None:
    assert changed(recorded(placed_cycle()), (0, "best"), ["n2", "n1"]).differences == []


def test_a_sampled_preemption_agrees_with_any_candidate() -> None:
    cycle = preempting_cycle()
    put(cycle, ("preemption", "sampled"), True)
    case = recorded(cycle)
    answer = answered(case)
    put(answer.body, ("cycles", 0, "preemption", "nominatedNode"), "n3")
    put(answer.body, ("cycles", 0, "preemption", "victims"), ["default/third"])
    assert compare(case, answer).differences == []
    assert changed(case, (0, "preemption", "nominatedNode"), "n4").differences != []


def test_victims_of_an_ambiguous_candidate_and_later_cycles_are_not_compared() -> None:
    cycle = preempting_cycle()
    put(cycle, ("preemption", "candidates", "n1", "ambiguous"), True)
    case = recorded(cycle, placed_cycle())
    answer = answered(case)
    put(answer.body, ("cycles", 0, "preemption", "candidates", "n1", "victims"), ["default/high"])
    put(answer.body, ("cycles", 0, "preemption", "victims"), ["default/high"])
    put(answer.body, ("cycles", 1, "message"), "anything")
    comparison = compare(case, answer)
    assert comparison.differences == []
    assert comparison.parts[FOLLOWED].checks == 1
    assert changed(case, (0, "preemption", "code"), "Error").differences != []


def test_exact_victims_are_compared_in_order_even_if_ambiguous() -> None:
    cycle = preempting_cycle()
    put(cycle, ("preemption", "candidates", "n1", "ambiguous"), True)
    case = recorded(cycle, placed_cycle())
    case.case["exactVictims"] = True
    answer = answered(case)
    assert compare(case, answer).parts[FOLLOWED].checks == 2
    swap_twins(answer.body)
    assert {each.where for each in compare(case, answer).differences} == {
        "cycle 0 default/urgent candidates.n1.victims",
        "cycle 0 default/urgent victims",
    }


@pytest.mark.parametrize(
    ("path", "new", "want"),
    [
        (("message",), "x", (3, 3)),
        (("scores", "NodeResourcesFit", "raw", "n1"), 1, (3, 3)),
        (("chosen",), "n2", (3, 1)),
        (("reserved",), {"provision": ["default/c"]}, (3, 1)),
    ],
    ids=["a text changes nothing", "a score changes nothing", "another node does", "another volume does"],
)
def test_later_cycles_are_compared_until_placements_or_volumes_differ(
    path: Path, new: Json, want: tuple[int, int]
) -> None:
    comparison = changed(recorded(*(placed_cycle(f"default/p{i}") for i in range(3))), (0, *path), new)
    followed = comparison.parts[FOLLOWED]
    assert (followed.checks, followed.agreed) == want


def test_a_different_number_of_cycles_is_a_difference() -> None:
    case = recorded(placed_cycle("default/a"), placed_cycle("default/b"))
    answer = Answer({**case.want, "cycles": [placed_cycle("default/a")]})
    comparison = compare(case, answer)
    assert [each[:3] for each in comparison.differences] == [("cycles", "length", 2)]
    assert comparison.parts[FOLLOWED].agreed == 1


def test_agreement_is_counted_per_plugin() -> None:
    comparison = changed(recorded(placed_cycle()), (0, "scores", "NodeResourcesFit", "raw", "n1"), 1)
    counts = {name: tally.agreed for name, tally in comparison.parts.items() if name.startswith("scores")}
    assert counts == {"scores": 0, "scores/NodeResourcesFit": 0, "scores/TaintToleration": 1}


@pytest.mark.parametrize("want_error", [None, "bad policy"])
def test_a_failed_answer_agrees_with_no_part(want_error: Json) -> None:
    case = recorded(placed_cycle())
    case.want["error"] = want_error
    comparison = compare(case, Answer({"id": case.id, "failure": "boom"}, "boom"))
    assert [each.part for each in comparison.differences] == ["answer"]
    assert all(tally.agreed == 0 for tally in comparison.parts.values())
    assert comparison.parts["scores/TaintToleration"].checks == 1


@pytest.mark.parametrize(
    ("recorded_error", "our_error", "want"),
    [("no such plugin", "there is no such plugin", True), ("no such plugin", None, False), (None, "refused", False)],
    ids=["both refuse", "only they refuse", "only we refuse"],
)
def test_a_refused_cycle_case_compares_only_the_refusal(recorded_error: Json, our_error: Json, want: bool) -> None:
    case = recorded(placed_cycle())
    case.want["error"] = recorded_error
    assert (not compare(case, Answer({**case.want, "error": our_error})).differences) == want


def test_a_trace_is_compared_up_to_the_first_differing_step() -> None:
    steps: list[Json] = [{"result": {}, "state": {"cycle": n, "active": []}} for n in range(4)]
    want: JsonObject = {"id": "queue/x/1", "error": None, "steps": steps}
    case = RecordedCase("queue", "queue/x/1", "queue", "", "f:1", {"ops": []}, want)
    answer = answered(case)
    put(answer.body, ("steps", 1, "state", "cycle"), 7)
    comparison = compare(case, answer)
    assert [each[:2] for each in comparison.differences] == [("cycle", "step 1")]
    assert (comparison.parts[FOLLOWED].agreed, comparison.parts[FOLLOWED].checks) == (2, 4)
    assert comparison.parts["active"].agreed == 2


def test_hint_errors_agree_in_any_wording_but_not_with_success() -> None:
    hint: JsonObject = {"answer": "Queue", "error": "could not parse"}
    want: JsonObject = {"id": "hints/x/1", "error": None, "events": [{"hints": [hint], "answer": "Queue"}]}
    case = RecordedCase("hints", "hints/x/1", "hints", "", "f:1", {"plugin": "X"}, want)
    answer = answered(case)
    put(answer.body, ("events", 0, "hints", 0, "error"), "parse error")
    assert compare(case, answer).differences == []
    put(answer.body, ("events", 0, "hints", 0, "error"), None)
    assert [each.part for each in compare(case, answer).differences] == ["events"]


def test_a_change_without_events_agrees_with_missing_and_empty_events() -> None:
    case = RecordedCase("hints", "hints/x/1", "hints", "", "f:1", {"plugin": "X"}, {"id": "hints/x/1", "error": None})
    answer = answered(case)
    assert compare(case, answer).differences == []
    put(answer.body, ("events",), [])
    assert compare(case, answer).differences == []
    put(answer.body, ("events",), [{"hints": [], "answer": "NotRegistered"}])
    assert [each.part for each in compare(case, answer).differences] == ["events"]
    assert list(compare(case, answer).parts) == ["error", "events/X", "events"]


DECODING_ERRORS: list[tuple[str, str, str, bool]] = [
    ("the same line", "yaml: line 3: mapping values are not allowed", "cfg.yaml: line 3: unexpected ':'", True),
    ("another line", "yaml: line 3: mapping values are not allowed", "cfg.yaml: line 33: unexpected ':'", False),
    (
        "the same path with indices",
        "json: cannot unmarshal string into Go struct field PluginSet.profiles.plugins.score.enabled of type v1.Plugin",
        "$.profiles[0].plugins.score.enabled[1]: expected an object, got 'x'",
        True,
    ),
    (
        "a longer name",
        "json: cannot unmarshal string into Go struct field Config.parallel of type int32",
        "$.parallelism: expected a number",
        False,
    ),
    (
        "the place of the arguments and the field in them",
        "decoding .profiles[0].pluginConfig[0]: decoding args for plugin A: json: cannot unmarshal string into "
        "Go struct field AArgs.weight of type int32",
        "$.profiles[0].pluginConfig[0].args.weight: expected a number",
        True,
    ),
    ("an unknown field is exact", 'strict decoding error: unknown field "foo"', 'unknown field "foo"', False),
    ("no text", "yaml: line 3: x", "", False),
    ("an error without a place is exact", "yaml: control characters are not allowed", "control characters", False),
]


@pytest.mark.parametrize(
    ("theirs", "ours", "want"), [e[1:] for e in DECODING_ERRORS], ids=[e[0] for e in DECODING_ERRORS]
)
def test_decoding_errors_agree_if_they_name_the_same_place(theirs: str, ours: str, want: bool) -> None:
    assert same_decoding_error(theirs, ours) is want


def test_differences_contain_the_path_and_both_values() -> None:
    found = differ("p", {"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"b": 2, "c": [1]}, "e": 1})
    assert [each[1:] for each in found] == [("a.b", 1, 2), ("d", 1, "<absent>"), ("e", "<absent>", 1)]


def reference_comparer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_compare", recording("compare.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves(value: Json, path: Path = ()) -> list[Path]:
    if isinstance(value, dict) and value:
        return [found for key, inner in value.items() for found in leaves(inner, (*path, key))]
    if isinstance(value, list) and value:
        return [found for index, inner in enumerate(value) for found in leaves(inner, (*path, index))]
    return [path]


def other(value: Json) -> Json:
    if isinstance(value, bool) or value is None:
        return "changed"
    if isinstance(value, int):
        return value + 1
    return f"{value} changed" if isinstance(value, str) else {"changed": 1}


@pytest.mark.parametrize(
    "family",
    ["cycles/preemption", "cycles/mixes", "cycles/volumes", "classic/preemption", "classic/policies", "config/cases"],
)
def test_changed_recorded_answers_are_judged_like_the_reference_comparer_does(family: str) -> None:
    cases = list(read_case_files([recording(*f"{family}.jsonl.gz".split("/"))])[0])
    judge = cast("Callable[[JsonObject, JsonObject], list[object]]", reference_comparer().compare)
    draw = random.Random(7)
    wrong = []
    for case in draw.sample(cases, 60):
        for path in draw.sample(paths := leaves(case.want), min(6, len(paths))):
            ours = copy.deepcopy(case.want)
            put(ours, path, other(at(ours, *path)))
            agrees, should = not compare(case, Answer(ours)).differences, not list(judge(case.want, ours))
            if agrees != should and not _open_by_the_readme(case, path):
                wrong.append((case.id, path, agrees, should))
    assert wrong == []


def _open_by_the_readme(case: RecordedCase, path: Path) -> bool:
    """Return whether a difference is a decoding error: the reference comparer compares its text, the README only its place."""
    return case.kind == "config" and path == ("error",)
