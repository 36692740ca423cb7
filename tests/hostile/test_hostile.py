"""A small sample of the hostile requests, sent to one server; ``make test-hostile`` sends 2,000 large ones."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from tests.hostile.__main__ import problem_with, summary, table
from tests.hostile.attacked_server import AttackedServer, RequestCost
from tests.hostile.families import FAMILIES, scenarios
from tests.hostile.scenario import Draws

SCALE = 0.02


def test_hostile_requests_stay_within_resource_limits(tmp_path: Path) -> None:
    server = AttackedServer(tmp_path)
    results: list[tuple[str, RequestCost]] = []
    problems: list[str] = []
    try:
        for name, scenario in islice(scenarios(7, SCALE), 2 * len(FAMILIES)):
            for request in scenario:
                taken = server.send(request)
                results.append((name, taken))
                problem = problem_with(request, taken)
                problems += [f"{name}: {problem}: {summary(request)}"] if problem else []
    finally:
        server.close()
    assert problems == [], table(results)
    assert "Traceback" not in server.log.read_text()


def test_a_seed_generates_the_same_requests() -> None:
    for name, family in FAMILIES.items():
        first = [family(Draws(f"{seed}/{name}", SCALE)) for seed in range(4)]
        assert [family(Draws(f"{seed}/{name}", SCALE)) for seed in range(4)] == first, name
        assert any(each != first[0] for each in first), name
