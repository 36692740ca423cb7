"""Asks the real scheduler: runs `oracle/BIN/cycle` on a few hundred cases at a time, under a limit of memory."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from bayplan.conformance.cases import JsonObject

MEMORY_BYTES = 4 << 30
"""The most that one process may use; the programs keep memory for every case."""

CASES_A_PROCESS = 1000


class Oracle:
    """The program that answers cycle cases with the decisions of the real scheduler."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "cycle"

    def answers(self, cases: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """Answer cases, in order.

        Raises:
            RuntimeError: the program ended without answering all.
        """
        rest = iter(cases)
        while chunk := list(islice(rest, CASES_A_PROCESS)):
            text = b"".join(msgspec.json.encode(case) + b"\n" for case in chunk)
            done = subprocess.run(
                [self.program], input=text, capture_output=True, preexec_fn=_limit_memory, check=False
            )
            lines = done.stdout.splitlines()
            if len(lines) != len(chunk):
                last = done.stderr.decode(errors="replace")[-2000:]
                raise RuntimeError(
                    f"{self.program} answered {len(lines)} of {len(chunk)} cases (code {done.returncode}): {last}"
                )
            for line in lines:
                told: JsonObject = msgspec.json.decode(line)
                yield told


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
