"""Counting agreement over cases."""

from bayplan.conformance.cases import JsonObject, RecordedCase
from bayplan.conformance.comparer import compare
from bayplan.conformance.summary import Summary
from tests.conformance.recorded import answered, placed_cycle, preempting_cycle, put, recorded


def test_agreement_is_counted_by_family_and_part() -> None:
    summary = Summary()
    right = recorded(placed_cycle("default/a"), placed_cycle("default/b"), name="one/1")
    summary.add(right, compare(right, answered(right)))
    wrong = recorded(placed_cycle("default/a"), placed_cycle("default/b"), name="one/2")
    answer = answered(wrong)
    put(answer.body, ("cycles", 0, "total", "n1"), 1)
    put(answer.body, ("cycles", 1, "total", "n1"), 1)
    put(answer.body, ("cycles", 1, "message"), "x")
    summary.add(wrong, compare(wrong, answer))
    other = recorded(preempting_cycle(), name="two/1")
    summary.add(other, compare(other, answered(other)))

    as_json = summary.as_json()
    assert (as_json["cases"], as_json["agreed"]) == (3, 2)
    families = as_json["families"]
    assert isinstance(families, dict)
    one = families["one"]
    assert isinstance(one, dict)
    assert (one["cases"], one["agreed"]) == (2, 1)
    parts = one["parts"]
    assert isinstance(parts, dict)
    assert parts["total"] == {"cases": 2, "agreed": 1, "checks": 4, "checksAgreed": 2}
    assert parts["message"] == {"cases": 2, "agreed": 1, "checks": 4, "checksAgreed": 3}
    assert parts["scores/TaintToleration"] == {"cases": 2, "agreed": 2, "checks": 4, "checksAgreed": 4}
    assert as_json["differences"] == [
        {
            "id": "one/2",
            "family": "one",
            "kind": "cycles",
            "part": part,
            "where": where,
            "want": want,
            "got": got,
            "more": more,
            "note": "made for a test",
        }
        for part, where, want, got, more in [
            ("total", "cycle 0 default/a n1", 337, 1, 1),
            ("message", "cycle 1 default/b", None, "x", 0),
        ]
    ]


def test_families_with_the_same_name_but_different_kinds_are_counted_separately() -> None:
    summary = Summary()
    for kind in ("cycles", "classic", "cycles"):
        question: JsonObject = {"id": "volumes/1"}
        case = RecordedCase(kind, "volumes/1", "volumes", "", "f:1", question, {"id": "volumes/1", "cycles": []})
        summary.add(case, compare(case, answered(case)))
    assert {name: family.cases for name, family in summary.families.items()} == {"volumes": 2, "classic/volumes": 1}
