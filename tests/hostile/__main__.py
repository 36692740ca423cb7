"""``python -m tests.hostile``: the run of ``make test-hostile``, which sends 2,000 hostile requests to one server.

Times are CPU seconds of the server, so that they do not depend on the machine's other load.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path

from tests.hostile.attacked_server import AttackedServer, RequestCost
from tests.hostile.families import scenarios
from tests.hostile.scenario import HostileRequest

MAX_SECONDS = 1.0
MAX_MEGABYTES = 200.0


def problem_with(request: HostileRequest, taken: RequestCost) -> str:
    """Return a description of the problems with an answer, or the empty string."""
    problems = []
    if taken.status == 0:
        problems.append(f"no answer: {taken.text}")
    if taken.status == 500 and "Internal error occurred" in taken.text:
        problems.append("an internal error")
    if taken.answer_s > MAX_SECONDS:
        problems.append(f"{taken.answer_s:.2f} s")
    if taken.megabytes > MAX_MEGABYTES:
        problems.append(f"{taken.megabytes:.0f} MB")
    return ", ".join(problems)


def summary(request: HostileRequest) -> str:
    """Return a line that describes a request."""
    body = (
        f" {len(request.body):,} B {request.content_type.partition('/')[2]} {request.body[:160]!r}"
        if request.body
        else ""
    )
    return f"{request.method} {request.path[:100]}{body}"


def table(results: list[tuple[str, RequestCost]]) -> str:
    """Return a line for each family: requests, answers by class of status code, highest cost of a request."""
    lines = [f"{'family':22} {'requests':>8} {'2xx':>6} {'4xx':>6} {'5xx':>5} {'answer s':>9} {'all s':>7} {'MB':>6}"]
    for family in dict.fromkeys(name for name, _ in results):
        found = [taken for name, taken in results if name == family]
        codes = Counter(taken.status // 100 for taken in found)
        answer_s, all_s, megabytes = (
            max(values) for values in zip(*((each.answer_s, each.all_s, each.megabytes) for each in found), strict=True)
        )
        counts = f"{len(found):>8,} {codes[2]:>6,} {codes[4]:>6,} {codes[5]:>5,}"
        lines.append(f"{family:22} {counts} {answer_s:>9.2f} {all_s:>7.2f} {megabytes:>6.0f}")
    return "\n".join(lines)


def main() -> None:
    """Send the requests, print a table, and fail if a request cost too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="", help="families whose names have this part")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    results: list[tuple[str, RequestCost]] = []
    problems = 0
    with tempfile.TemporaryDirectory() as name:
        server = AttackedServer(Path(name))
        try:
            source = (
                (family, each) for family, many in scenarios(options.seed, options.scale, options.only) for each in many
            )
            for family, request in islice(source, options.requests):
                taken = server.send(request)
                results.append((family, taken))
                problem = problem_with(request, taken)
                if problem:
                    problems += 1
                    print(f"{family}: {problem}: {taken.status}: {summary(request)}", flush=True)
        finally:
            server.close()
            log = server.log.read_text()
    print(table(results))
    assert "Traceback" not in log, log[-5_000:]
    assert not problems, f"{problems} requests took too much"


if __name__ == "__main__":
    main()
