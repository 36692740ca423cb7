"""The gang example: one command shows both outcomes, and docs/gang.md contains its output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_compare_prints_the_output_in_gang_md() -> None:
    done = subprocess.run(
        [sys.executable, "examples/gang/compare.py"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    default, _, gang = done.stdout.partition("== with Gang")
    assert default.count("4 of 6") == default.count("never") == 2
    assert gang.count("6 of 6") == gang.count("trained") == 2
    page = (ROOT / "docs" / "gang.md").read_text(encoding="utf-8")
    assert f"```text\n{done.stdout}```" in page, "copy the output of python examples/gang/compare.py to docs/gang.md"
