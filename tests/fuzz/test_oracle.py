"""Asking the real scheduler: in small portions, in order, and not without noticing that it gave up."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.oracle import Oracle

from fuzz import oracle


def program(folder: Path, script: str) -> Oracle:
    path = folder / "cycle"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Oracle(folder)


def test_answers_come_in_the_order_of_the_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "CASES_A_PROCESS", 2)
    echo = program(tmp_path, "cat")
    assert [answer["id"] for answer in echo.answers([{"id": str(number)} for number in range(5)])] == list("01234")


def test_a_program_that_gives_up_is_noticed(tmp_path: Path) -> None:
    broken = program(tmp_path, "head -n 1; echo out of memory >&2; exit 3")
    with pytest.raises(RuntimeError, match=r"1 of 2 cases \(code 3\): out of memory"):
        list(broken.answers([{"id": "a"}, {"id": "b"}]))
