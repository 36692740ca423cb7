"""Lines that `bayplan schedule` prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bayplan.base.background_output import background_output
from bayplan.cli.schedule import _print_line


def test_a_full_disk_does_not_stop_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, which only Linux has")
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with background_output():
            _print_line("scheduling")
            _print_line("the lease was lost")
