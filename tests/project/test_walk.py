"""The walk of one pod through the engine, as the documentation describes it, is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import takewhile

from tests.project.tree import ROOT

LEFT_OUT = ("heap", "in_flight", "log_reader", "nominated_pods", "nominator")
MAX_FILES = 12


def test_a_cycle_runs_through_the_files_of_the_walk_in_their_order() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text().split("## One pod, from the queue to its record")[1]
    lines = takewhile(lambda line: not line.startswith("What else"), text.splitlines())
    walk = [found[1] for line in lines if (found := re.match(r"\| `([a-z_/]+\.py)` ", line))]
    assert len(walk) <= MAX_FILES
    assert all(f"`engine/{name}.py`" in text for name in LEFT_OUT)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.project.traced_cycle"],
        cwd=ROOT,
        env={**os.environ, "BAYPLAN_UNCOMPILED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    traced = [path for path in ran.stdout.split() if path in walk or path.startswith("engine/")]
    assert [path for path in traced if path not in {f"engine/{name}.py" for name in LEFT_OUT}] == walk
