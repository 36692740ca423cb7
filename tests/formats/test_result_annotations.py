"""The result annotations of kube-scheduler-simulator: against recorded ones, and within the size limit."""

import gzip
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.base.go_text.json import go_json
from bayplan.formats.result_annotations import (
    HISTORY,
    PREFIX,
    SchedulingResults,
    decode,
    encode,
    history_of,
    size_of,
    write,
)

RECORDED = Path(__file__).parents[2] / "conformance/annotations/scenarios.jsonl.gz"


def recorded_pods() -> Iterator[tuple[str, dict[str, str]]]:
    with gzip.open(RECORDED, "rt") as lines:
        for line in lines:
            scenario = json.loads(line)
            for run in ("annotations", "second_run_annotations"):
                for pod, annotations in scenario.get(run, {}).items():
                    yield f"{scenario['id']} {pod}", annotations


def test_recorded_results_are_encoded_byte_for_byte() -> None:
    count = 0
    for name, annotations in recorded_pods():
        rewritten = encode(decode(annotations))
        for key, text in annotations.items():
            if key.startswith(PREFIX) and key != HISTORY:
                assert rewritten[key] == text, f"{name} {key}"
                count += 1
        for number, entry in enumerate(history_of(annotations)):
            assert encode(decode(entry)) == entry, f"{name} attempt {number}"
    assert count > 900


def test_recorded_histories_are_written_byte_for_byte() -> None:
    for name, annotations in recorded_pods():
        if HISTORY not in annotations:
            continue
        present: dict[str, str] = {}
        for entry in history_of(annotations):
            present = write(decode(entry), present, by_interest=tuple).annotations
        assert present[HISTORY] == annotations[HISTORY], name


def of_nodes(count: int, reason: str = "Insufficient cpu") -> SchedulingResults:
    names = [f"n{number}" for number in range(count)]
    return SchedulingResults(
        filter={name: {"NodeResourcesFit": reason} for name in names},
        post_filter={name: {} for name in names},
        score={name: {"ImageLocality": 7} for name in names},
        final_score={name: {"ImageLocality": 7} for name in names},
    )


def by_number(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def test_the_oldest_attempts_are_dropped_first_above_the_size_limit() -> None:
    first = write(of_nodes(3, "first"), {}, by_interest=tuple).annotations
    second = write(of_nodes(3, "second"), first, by_interest=tuple).annotations
    assert [decode(entry).filter["n0"] for entry in history_of(second)] == [
        {"NodeResourcesFit": "first"},
        {"NodeResourcesFit": "second"},
    ]
    third = write(of_nodes(3, "third"), second, by_interest=tuple, limit=size_of(second))
    assert (third.left_out_attempts, third.left_out_nodes) == (1, 0)
    assert [decode(entry).filter["n0"]["NodeResourcesFit"] for entry in history_of(third.annotations)] == [
        "second",
        "third",
    ]


def test_the_lowest_ranked_nodes_are_dropped_above_the_size_limit() -> None:
    results = of_nodes(50)
    written = write(results, {}, by_interest=lambda: by_number(50)[::-1], limit=4_000)
    kept = decode(written.annotations)
    assert 0 < len(kept.filter) < 50
    assert list(kept.filter) == sorted(by_number(50)[50 - len(kept.filter) :])
    assert kept.filter.keys() == kept.score.keys() == kept.final_score.keys() == kept.post_filter.keys()
    assert written.left_out_nodes == 50 - len(kept.filter)
    assert history_of(written.annotations) == [encode(kept)]


def test_foreign_annotations_count_against_the_limit_and_are_not_written() -> None:
    others = {"example.org/notes": "x" * 1_000}
    written = write(of_nodes(2), others, by_interest=lambda: by_number(2), limit=3_500)
    assert "example.org/notes" not in written.annotations
    assert size_of({**others, **written.annotations}) <= 3_500
    with pytest.raises(InputError, match=r"annotations: 1017 of 1100 bytes are in use"):
        write(of_nodes(2), others, by_interest=lambda: by_number(2), limit=1_100)


@pytest.mark.parametrize(
    ("key", "text", "want"),
    [
        ("filter-result", "{", "annotation kube-scheduler-simulator.sigs.k8s.io/filter-result: expected the result"),
        ("score-result", '{"n":{"p":"x"}}', "score-result: expected the result of an attempt, got Expected `int`"),
        ("prefilter-result", "[]", "prefilter-result: expected the result of an attempt, got Expected `object`"),
    ],
)
def test_invalid_result_annotations_are_refused(key: str, text: str, want: str) -> None:
    with pytest.raises(InputError, match=want):
        decode({PREFIX + key: text})


def test_an_invalid_history_is_refused() -> None:
    with pytest.raises(InputError, match="result-history: expected a JSON list of attempts, got Expected `array`"):
        history_of({HISTORY: "{}"})


@given(
    attempts=st.lists(st.tuples(st.integers(0, 40), st.text(max_size=20)), min_size=1, max_size=5),
    limit=st.integers(1_300, 30_000),
)
def test_annotations_never_exceed_the_size_limit(attempts: list[tuple[int, str]], limit: int) -> None:
    present = {"example.org/é": "ü"}
    for nodes, reason in attempts:
        results = of_nodes(nodes, reason)
        written = write(results, present, by_interest=partial(by_number, nodes), limit=limit)
        present = {**present, **written.annotations}
        assert size_of(present) <= limit
        assert len(decode(present).filter) == nodes - written.left_out_nodes
        assert go_json(history_of(present)) == present[HISTORY]
