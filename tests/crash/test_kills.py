"""No acknowledged write is lost when the server is killed: a few kills here, two hundred in ``make test-crash``."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.crash.__main__ import write_objects
from tests.crash.kills import Run
from tests.crash.watcher import Watcher
from tests.crash.writer import Pending, Writer, document, number_of


def test_kills_lose_no_acknowledged_write(tmp_path: Path) -> None:
    write_objects(tmp_path / "objects.json", 50)
    figures = Run(tmp_path, 3, [str(tmp_path / "objects.json")], print).kill_often(4)
    assert figures.kills == 4
    assert figures.acknowledged > 10
    assert figures.events > 5


def test_lost_half_written_and_undone_changes_are_detected() -> None:
    writer = Writer(0, Random(1), [0])
    writer.known = {"w0-1": 5, "w0-2": 6}
    writer.pending = [Pending("w0-2", None)]
    writer.reconcile({"w0-1": 5})
    with pytest.raises(AssertionError, match="configmaps w0-1: 4 instead of one of"):
        writer.reconcile({"w0-1": 4})
    half = document("pods", "p", 3) | {"metadata": {**document("pods", "p", 4)["metadata"], "labels": {"number": "3"}}}  # type: ignore[dict-item]
    with pytest.raises(AssertionError, match="half an object"):
        number_of("pods", half)
    watcher = Watcher("pods")
    watcher.last = {"p": ("MODIFIED", 7)}
    with pytest.raises(AssertionError, match="revision 7 was seen"):
        watcher.check({"p": 6}, 6)
