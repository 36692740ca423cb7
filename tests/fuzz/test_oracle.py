"""Requests to the real scheduler: in small batches, in order, and with an error if it stops early."""

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


def test_answers_are_in_the_order_of_the_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "CASES_A_PROCESS", 2)
    echo = program(tmp_path, "cat")
    assert [answer["id"] for answer in echo.answers([{"id": str(number)} for number in range(5)])] == list("01234")


def test_a_crashing_case_is_reported_and_the_others_are_answered(tmp_path: Path) -> None:
    broken = program(tmp_path, 'text=$(cat); case "$text" in *bad*) echo panic >&2; exit 3;; esac; echo "$text"')
    good_a, bad, good_b = broken.answers([{"id": "a"}, {"id": "bad"}, {"id": "b"}])
    assert (good_a, good_b) == ({"id": "a"}, {"id": "b"})
    assert bad["id"] == "bad"
    assert "ended with code 3: panic" in str(bad["error"])


def test_skipped_cases_are_sent_to_the_oracle_again(tmp_path: Path) -> None:
    lazy = program(tmp_path, "head -n 1")
    assert list(lazy.answers([{"id": "a"}, {"id": "b"}])) == [{"id": "a"}, {"id": "b"}]
