"""Compare Bayplan's answer with the recorded one, strictly and part by part. Runs no case, and sums over no cases.

Everything is compared exactly, including the type of a number, except what the recordings leave open:

- reasons of filters and the members of ``best`` have no order;
- equal preemption candidates: any of ``nominatedNodes`` is right (any candidate, where upstream looks at a random
  sample). Victims that are equal in priority and start time may change places. Victims of a candidate that is marked
  ambiguous are not compared, nor is any later cycle (unless the case says ``exactVictims``: its objects are in the
  order in which the scheduler received them);
- errors of several nodes in one dry run of preemption are in the order in which its workers ended;
- if only some of the nodes were examined, any of the best nodes is right, and later pods are compared only if it is the
  recorded node;
- an error of a hint function, and the wording of YAML syntax and Go type errors: see `_normalized_hints` and
  `same_decoding_error`.

Parts that agree are distinguished from those that differ in every cycle, so that a missing plugin does not hide the
others. A cycle depends on the cluster that the cycles before it left. It is compared only if Bayplan's cluster equals
the real one, and counted as not followed otherwise.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from bayplan.conformance.annotation_values import comparable_annotation_parts
from bayplan.conformance.answers import Answer
from bayplan.conformance.cases import Json, JsonObject, RecordedCase
from bayplan.conformance.e2e_runs import comparable_run_parts
from bayplan.conformance.exchanges import comparable_parts
from bayplan.conformance.victims import victim_ranks

_COMPARABLE_PARTS = {
    "api": comparable_parts,
    "e2e": comparable_run_parts,
    "annotations": comparable_annotation_parts,
}
"""Functions that return the parts of the recorded answer and of Bayplan's, reduced to what is comparable, by kind."""

ABSENT = "<absent>"
"""The value in a difference for a key that only the other side has."""

FOLLOWED = "followed"
"""Not a part of an answer: counts the recorded cycles or steps that could be compared."""

SCHEDULED_PODS = {"sampled": "sampled", "extenders": "extended"}
"""Kinds whose answers are sequences of results for single pods, and the keys of these sequences."""

_BY_PLUGIN = frozenset({"filterAll", "scores", "predicates", "priorities"})
_UNORDERED_REASONS = frozenset({"filterAll", "filter", "predicates"})
_CARRIED = ("chosen", "reserve", "permit", "reserved", "preEnqueue")
"""Parts of a cycle that later cycles depend on, in addition to the nominated node."""
_NOT_COMPARED = frozenset({"id", "kubernetes"})
_PLACE = re.compile(r"\b(line \d+)\b|\bdecoding \.([\w.\[\]]+\w\]?)|\bGo struct field \w+\.([\w.]+)")
_DRY_RUN_ERRORS = re.compile(r"preemption: \[(.*)\]\Z", re.DOTALL)
_INDEX = re.compile(r"\[\d+\]")


class Difference(NamedTuple):
    """One difference between two answers: the part, the position in it, the recorded value, and Bayplan's."""

    part: str
    where: str
    want: Json
    got: Json


@dataclass(slots=True)
class Tally:
    """The number of comparisons of one part within one case (once per cycle or step), and how many of them agreed."""

    checks: int = 0
    agreed: int = 0


@dataclass(slots=True)
class Comparison:
    """The result of one case: the differences, and a tally of every part (``scores``) and sub-part (``scores/X``)."""

    differences: list[Difference] = field(default_factory=list)
    parts: dict[str, Tally] = field(default_factory=dict)

    def count(self, part: str, agreed: bool) -> None:
        """Count one comparison of a part."""
        tally = self.parts.setdefault(part, Tally())
        tally.checks += 1
        tally.agreed += agreed

    def record(self, part: str, differences: list[Difference], *, at: str = "") -> bool:
        """Count one comparison of a part, and store its differences; return whether the part agrees."""
        self.count(part, not differences)
        self.differences += [each._replace(where=f"{at} {each.where}".strip()) for each in differences]
        return not differences


def compare(case: RecordedCase, answer: Answer) -> Comparison:
    """Compare Bayplan's answer to a case with the recorded answer. The case agrees if the result has no differences."""
    comparison = Comparison()
    want, got = case.want, answer.body
    if answer.failure:
        comparison.record("answer", [Difference("answer", "", "an answer", answer.failure)])
        _count_all_as_different(comparison, case)
    elif bool(want.get("error")) != bool(got.get("error")):
        comparison.record("error", [Difference("error", "", want.get("error"), got.get("error"))])
        _count_all_as_different(comparison, case)
    elif case.kind in ("cycles", "classic"):
        if want.get("error"):
            comparison.count("error", True)
        else:
            _compare_cycles(comparison, case, _objects(want.get("cycles")), _objects(got.get("cycles")))
    elif case.kind in SCHEDULED_PODS and not want.get("error"):
        key = SCHEDULED_PODS[case.kind]
        _compare_scheduled(comparison, key, _objects(want.get(key)), _objects(got.get(key)))
    elif case.kind in _COMPARABLE_PARTS:
        for part, theirs, ours in _COMPARABLE_PARTS[case.kind](want, got):
            comparison.record(part, differ(part, theirs, ours))
    elif case.kind in ("queue", "classic-queue"):
        _compare_steps(comparison, _objects(want.get("steps")), _objects(got.get("steps")))
    else:
        _compare_whole(comparison, case, want, got)
    return comparison


def differ(part: str, want: Json, got: Json, where: str = "") -> list[Difference]:
    """Return the positions at which two values differ, descending into objects so that each difference is short."""
    if _same(want, got):
        return []
    if isinstance(want, dict) and isinstance(got, dict):
        found = []
        for key in sorted(want.keys() | got.keys()):
            inner = f"{where}.{key}" if where else key
            found += differ(part, want.get(key, ABSENT), got.get(key, ABSENT), inner)
        return found
    return [Difference(part, where, want, got)]


def _same(want: Json, got: Json) -> bool:
    # The encoding distinguishes 1, 1.0 and true, which Python's own comparison does not.
    return want == got and (
        msgspec.json.encode(want, order="deterministic") == msgspec.json.encode(got, order="deterministic")
    )


class _States(Enum):
    """How Bayplan's state after an entry of a sequence relates to the recorded one."""

    EQUAL = auto()
    DIFFERENT = auto()
    UNKNOWN = auto()


def _compare_in_order(
    comparison: Comparison,
    part: str,
    want: list[JsonObject],
    got: list[JsonObject],
    compare_entries: Callable[[int, JsonObject, JsonObject], _States],
) -> None:
    """Compare a recorded sequence with Bayplan's, and count the recorded entries.

    Entries after a pair with different states count as not followed; those after a pair with unknown states are not counted.
    """
    if len(want) != len(got):
        comparison.record(part, [Difference(part, "length", len(want), len(got))])
    states = _States.EQUAL
    for number, left in enumerate(want):
        is_compared = states is _States.EQUAL and number < len(got)
        comparison.count(FOLLOWED, is_compared)
        if is_compared:
            states = compare_entries(number, left, got[number])
        if states is _States.UNKNOWN:
            return


def _compare_cycles(comparison: Comparison, case: RecordedCase, want: list[JsonObject], got: list[JsonObject]) -> None:
    def compare_cycle(number: int, left: JsonObject, right: JsonObject) -> _States:
        found = len(comparison.differences)
        at = f"cycle {number} {left.get('pod', '')}".strip()
        for part in sorted(left.keys() | right.keys()):
            if part in left or not _is_empty(right[part]):
                _compare_part(comparison, case, part, left.get(part, ABSENT), right.get(part, ABSENT), at)
        if _is_ambiguous(left) and not _has_exact_victims(case):
            return _States.UNKNOWN
        agrees = len(comparison.differences) == found
        return _States.EQUAL if agrees or _ends_in_same_state(left, right) else _States.DIFFERENT

    _compare_in_order(comparison, "cycles", want, got, compare_cycle)


def _compare_part(comparison: Comparison, case: RecordedCase, part: str, want: Json, got: Json, at: str) -> None:
    if part == "preemption":
        _compare_preemption(comparison, case, want, got, at)
        return
    if part in _UNORDERED_REASONS:
        want, got = _sorted_reasons(want), _sorted_reasons(got)
    elif part == "best":
        want, got = _sorted_names(want), _sorted_names(got)
    elif got == ABSENT and want is None:
        got = None
    elif part == "message":
        want, got = _with_sorted_errors(want), _with_sorted_errors(got)
    if part in _BY_PLUGIN and isinstance(want, dict):
        ours = got if isinstance(got, dict) else {}
        for plugin in sorted(want.keys() | ours.keys()):
            comparison.count(
                f"{part}/{plugin}", plugin in want and plugin in ours and _same(want[plugin], ours[plugin])
            )
    comparison.record(part, differ(part, want, got), at=at)


def _compare_preemption(comparison: Comparison, case: RecordedCase, want: Json, got: Json, at: str) -> None:
    part = "preemption"
    if not isinstance(want, dict) or not isinstance(got, dict):
        got = None if got == ABSENT else got
        comparison.record(part, differ(part, None if want == ABSENT else want, got), at=at)
        if isinstance(want, dict):
            for name in ("code", "reasons", "candidates", "victims", "nominatedNode"):
                if name in want:
                    comparison.count(f"{part}/{name}", False)
        return
    sub_parts: dict[str, list[Difference]] = {
        name: differ(part, _with_sorted_errors(want[name]), _with_sorted_errors(got.get(name, ABSENT)), name)
        for name in ("code", "reasons")
        if name in want
    }
    ranks = _Ranks(case)
    theirs, ours = _object(want.get("candidates")), _object(got.get("candidates"))
    sub_parts["candidates"] = differ(part, _sorted_names(list(theirs)), _sorted_names(list(ours)), "candidates")
    sub_parts["victims"] = []
    for node in sorted(theirs.keys() & ours.keys()):
        sub_parts["victims"] += _compare_candidate(
            _object(theirs[node]), _object(ours[node]), f"candidates.{node}", ranks
        )
    key = "nominatedNode" if "nominatedNode" in want else "node"
    sub_parts[key] = _compare_nominated_node(key, want, got)
    if not sub_parts[key]:
        sub_parts["victims"] += _compare_victims(key, want, got, ranks)
    for name, differences in sub_parts.items():
        comparison.count(f"{part}/{name}", not differences)
    comparison.record(part, [each for differences in sub_parts.values() for each in differences], at=at)


def _compare_candidate(want: JsonObject, got: JsonObject, where: str, ranks: "_Ranks") -> list[Difference]:
    """Compare the recorded keys of a candidate (its victims, the number of violated budgets) with Bayplan's."""
    found: list[Difference] = []
    if want.get("ambiguous") and not ranks.exact:
        return found
    for key in sorted(want.keys() - {"ambiguous"}):
        left, right = want[key], got.get(key, ABSENT)
        if (
            key == "victims"
            and isinstance(left, list)
            and isinstance(right, list)
            and ranks.same_but_for_ties(left, right)
        ):
            continue
        found += differ("preemption", left, right, f"{where}.{key}".strip("."))
    return found


def _compare_victims(key: str, want: JsonObject, got: JsonObject, ranks: "_Ranks") -> list[Difference]:
    """Compare the victims on Bayplan's nominated node, if any, with those of the same recorded candidate."""
    chosen = got.get(key) or None
    candidate = _object(_object(want.get("candidates")).get(str(chosen)))
    if candidate.get("ambiguous") and not ranks.exact:
        return []
    if chosen != (want.get(key) or None):
        return _compare_candidate(_only(candidate, "victims"), got, "", ranks)
    return _compare_candidate(_only(want, "victims", "nominatedToClear"), got, "", ranks)


def _compare_nominated_node(key: str, want: JsonObject, got: JsonObject) -> list[Difference]:
    listed = want.get("nominatedNodes") or want.get("nodes")
    equals: list[Json] = listed if isinstance(listed, list) else [want[key]] if want.get(key) else []
    if want.get("sampled"):
        equals = list(_object(want.get("candidates"))) or equals
    chosen = got.get(key) or None
    return [] if chosen in (equals or [None]) else [Difference("preemption", key, equals, chosen)]


class _Ranks:
    """The order of victims, up to ties, in one case; computed when two lists of victims first differ only in order."""

    def __init__(self, case: RecordedCase) -> None:
        self._case = case
        self.exact = _has_exact_victims(case)

    def same_but_for_ties(self, want: list[Json], got: list[Json]) -> bool:
        if want == got:
            return True
        # In the classic scheduler's answers, victims that violate a budget come first: these lists are compared
        # exactly.
        if self.exact or self._case.kind != "cycles" or sorted(map(str, want)) != sorted(map(str, got)):
            return False
        ranks = victim_ranks(self._case.case)
        return [ranks.get(str(pod)) for pod in want] == [ranks.get(str(pod)) for pod in got]


def _ends_in_same_state(want: JsonObject, got: JsonObject) -> bool:
    if any(not _same(want.get(part), got.get(part)) for part in _CARRIED):
        return False
    left, right = _object(want.get("preemption")), _object(got.get("preemption"))
    return all((left.get(key) or None) == (right.get(key) or None) for key in ("nominatedNode", "node"))


def _has_exact_victims(case: RecordedCase) -> bool:
    return case.case.get("exactVictims") is True


def _is_ambiguous(cycle: JsonObject) -> bool:
    candidates = _object(_object(cycle.get("preemption")).get("candidates"))
    return any(_object(candidate).get("ambiguous") for candidate in candidates.values())


def _compare_scheduled(comparison: Comparison, key: str, want: list[JsonObject], got: list[JsonObject]) -> None:
    """Compare pod by pod, up to the first pod that is on a different one of the best nodes.

    All later decisions depend on that node.
    """

    def compare_pod(number: int, left: JsonObject, right: JsonObject) -> _States:
        at = f"pod {number} {left.get('pod', '')}".strip()
        for part in sorted((left.keys() | right.keys()) - {"host", "hosts"}):
            comparison.record(part, differ(part, left.get(part, ABSENT), right.get(part, ABSENT)), at=at)
        host, hosts = left.get("host"), right.get("hosts")
        is_right = host in hosts if isinstance(hosts, list) and hosts else host is None
        comparison.record("host", [] if is_right else [Difference("host", "", host, hosts or None)], at=at)
        return _States.EQUAL if host == right.get("host") else _States.DIFFERENT

    _compare_in_order(comparison, key, want, got, compare_pod)


def _compare_steps(comparison: Comparison, want: list[JsonObject], got: list[JsonObject]) -> None:
    """Compare a trace operation by operation, up to the first one after which the states differ.

    All later operations depend on that state.
    """

    def compare_step(number: int, left: JsonObject, right: JsonObject) -> _States:
        theirs, ours = _flat_step(left), _flat_step(right)
        found = len(comparison.differences)
        for part in sorted(theirs.keys() | ours.keys()):
            differences = differ(part, theirs.get(part, ABSENT), ours.get(part, ABSENT))
            comparison.record(part, differences, at=f"step {number}")
        return _States.EQUAL if len(comparison.differences) == found else _States.DIFFERENT

    _compare_in_order(comparison, "steps", want, got, compare_step)


def _flat_step(step: JsonObject) -> JsonObject:
    """Return a step with the parts of its state as parts of the step, so that each part is counted separately."""
    state = step.get("state")
    if not isinstance(state, dict):
        return step
    return {**{key: value for key, value in step.items() if key != "state"}, **state}


def _compare_whole(comparison: Comparison, case: RecordedCase, want: JsonObject, got: JsonObject) -> None:
    for part in sorted((want.keys() | got.keys()) - _NOT_COMPARED):
        left, right = want.get(part), got.get(part)
        if part == "error" and case.kind == "config" and same_decoding_error(left, right):
            right = left
        if part == "events" and case.kind == "hints":
            left, right = _normalized_hints(left), _normalized_hints(right)
            comparison.count(f"{part}/{case.case.get('plugin')}", _same(left, right))
        comparison.record(part, differ(part, left, right))


def same_decoding_error(want: Json, got: Json) -> bool:
    """Return whether two errors of a configuration that could not be decoded are equivalent.

    YAML syntax errors and Go type errors (``yaml: line 3: ...``, ``json: cannot unmarshal string into Go struct field
    PluginSet.profiles.plugins.score.enabled of type ...``) are equivalent if Bayplan's error names the line or the path that
    the recorded one names (with or without indices). All other errors must be equal.
    """
    if not isinstance(want, str) or not isinstance(got, str) or want == got:
        return want == got
    if not got or not (want.startswith("yaml: ") or "cannot unmarshal" in want):
        return False
    # A Go field is named Struct.path: the struct is an internal name of upstream, the path is that of the user's file.
    places = [_INDEX.sub("", line or path or field) for line, path, field in _PLACE.findall(want)]
    return bool(places) and all(re.search(rf"\b{re.escape(place)}\b", _INDEX.sub("", got)) for place in places)


def _normalized_hints(events: Json) -> Json:
    """Return the events of a hint case, with errors replaced by whether there was one: their texts are not compared.

    A change without events (None) becomes an empty list.
    """
    if events is None:
        return []
    if not isinstance(events, list):
        return events
    return [
        {
            key: [{**_object(hint), "error": bool(_object(hint).get("error"))} for hint in value]
            if key == "hints" and isinstance(value, list)
            else value
            for key, value in _object(event).items()
        }
        for event in events
    ]


def _count_all_as_different(comparison: Comparison, case: RecordedCase) -> None:
    """Count every recorded part of an unanswered case as compared and different."""
    for part, value in _recorded_parts(case):
        comparison.count(part, False)
        if part in _BY_PLUGIN and isinstance(value, dict):
            for plugin in sorted(value):
                comparison.count(f"{part}/{plugin}", False)
        elif part == "events" and case.kind == "hints":
            comparison.count(f"{part}/{case.case.get('plugin')}", False)


def _recorded_parts(case: RecordedCase) -> Iterator[tuple[str, Json]]:
    if case.kind in ("cycles", "classic"):
        for cycle in _objects(case.want.get("cycles")):
            yield FOLLOWED, None
            yield from cycle.items()
    elif case.kind in SCHEDULED_PODS:
        for pod in _objects(case.want.get(SCHEDULED_PODS[case.kind])):
            yield FOLLOWED, None
            yield from pod.items()
    elif case.kind in ("queue", "classic-queue"):
        for step in _objects(case.want.get("steps")):
            yield FOLLOWED, None
            yield from _flat_step(step).items()
    elif case.want is not case.case:
        yield from ((part, value) for part, value in case.want.items() if part not in _NOT_COMPARED | {"error"})


def _sorted_reasons(value: Json) -> Json:
    """Return a map of failures with every list of reasons sorted; None becomes an empty map."""
    if value is None or value == ABSENT:
        return {}
    return _with_lists(value, sorted_by=str)


def _with_lists(value: Json, *, sorted_by: Callable[[Json], str]) -> Json:
    if isinstance(value, Mapping):
        return {key: _with_lists(inner, sorted_by=sorted_by) for key, inner in value.items()}
    if isinstance(value, list):
        return sorted(value, key=sorted_by)
    return value


def _with_sorted_errors(value: Json) -> Json:
    """Return a text (or list of texts) with the comma-separated errors of a dry run of preemption sorted."""
    if isinstance(value, list):
        return [_with_sorted_errors(item) for item in value]
    if not isinstance(value, str):
        return value
    return _DRY_RUN_ERRORS.sub(lambda found: f"preemption: [{', '.join(sorted(found[1].split(', ')))}]", value)


def _sorted_names(value: Json) -> Json:
    if value is None or value == ABSENT:
        return []
    return sorted(value, key=str) if isinstance(value, list) else value


def _is_empty(value: Json) -> bool:
    return value is None or value is False or value == [] or value == {}


def _only(value: JsonObject, *keys: str) -> JsonObject:
    return {key: value[key] for key in keys if key in value}


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Json) -> list[JsonObject]:
    return [_object(item) for item in value] if isinstance(value, list) else []
