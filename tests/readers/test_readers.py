"""Answers while pods are being scheduled; `make test-readers` runs the same with 100,000 pods."""

from __future__ import annotations

from pathlib import Path

from tests.readers.__main__ import placed_pods, read_while_scheduling, server
from tests.readers.reader import contradiction_in_matrix, contradiction_in_nodes, contradiction_in_overview

PODS = 1_000


def test_responses_during_scheduling_are_consistent(tmp_path: Path) -> None:
    with server(tmp_path, PODS) as address:
        answers, _ = read_while_scheduling(address, PODS, 3, seed=1)
        assert placed_pods(address) == PODS
    assert [answer for answer in answers if answer.problem] == []
    assert {answer.question for answer in answers} >= {"overview", "nodes", "decisions"}


def test_contradictions_are_detected() -> None:
    counts = {"pods": 3, "placed": 2, "waiting": 1, "gated": 0, "terminating": 0, "finished": 0}
    rows = [{"resource": "cpu", "zone": "", "requested": 300}, {"resource": "memory", "zone": "", "requested": 0}]
    assert "2 placed pods request" in contradiction_in_overview({"counts": counts, "utilisation": rows})
    assert "not placed and other" in contradiction_in_overview({"counts": {**counts, "pods": 4}, "utilisation": rows})
    node = {"name": "n", "pods": 1, "requested": {"pods": 1, "cpu": 0, "memory": 0}, "allocatable": {}, "free": {}}
    assert "n has 1 pods" in contradiction_in_nodes({"items": [node]})
    row = {"node": "n", "total": 3, "weighted": [1, 1]}
    matrix = {"recorded": True, "counts": {"fit": 1}, "nodes": 1, "rows": [row], "tie_set": ["n"], "winner": "n"}
    assert "the total of [1, 1] is not 3" in contradiction_in_matrix(matrix)
    assert "are not 2 nodes" in contradiction_in_matrix({**matrix, "nodes": 2})
    assert "the best nodes" in contradiction_in_matrix({**matrix, "rows": [{**row, "total": 2}], "tie_set": ["m"]})
