"""The walks in the documentation agree with traces: of a pod through the engine, of a write through a server."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.project.tree import ROOT

LEFT_OUT = ("heap", "in_flight", "nominated_pods")
MAX_FILES = 12
TIMER = "apiserver/bridge/kubelet.py advance_one"
"""The kubelet's timer also runs between the other calls of a write, earlier on a busy machine."""


def test_a_cycle_passes_the_documented_files_in_order() -> None:
    text = (
        (ROOT / "docs" / "architecture.md")
        .read_text()
        .split("## One pod, from the queue to its record")[1]
        .split("\n## ")[0]
    )
    walk = re.findall(r"^\| `([a-z_/]+\.py)` ", text, re.MULTILINE)
    assert len(walk) <= MAX_FILES
    assert all(f"`engine/{name}.py`" in text for name in LEFT_OUT)
    traced = [path for path in _run("tests.project.traced_cycle") if path in walk or path.startswith("engine/")]
    assert [path for path in traced if path not in {f"engine/{name}.py" for name in LEFT_OUT}] == walk


def test_a_write_calls_the_documented_functions_in_order() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text().split("## One write, from kubectl")[1].split("\n## ")[0]
    walk = [f"{path} {name}" for path, name in re.findall(r"^\| `([a-z_/]+\.py)` \| `(\w+)` \|", text, re.MULTILINE)]
    assert len(walk) > 15
    called = [call for call in _run("tests.project.traced_write") if call in walk]
    assert sorted(called) == sorted(walk)
    assert [call for call in called if call != TIMER] == [call for call in walk if call != TIMER]


def _run(module: str) -> list[str]:
    """Return the lines that a module prints, with compiled modules as Python source, whose calls can be traced."""
    ran = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={**os.environ, "BAYPLAN_UNCOMPILED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.splitlines()
