"""Asks the real scheduler: runs the programs of `oracle/BIN` on a few hundred cases at a time, under a limit of memory."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from bayplan.conformance.cases import JsonObject

MEMORY_BYTES = 4_000_000 << 10
"""The most that one process may use; the programs keep memory for every case."""

CASES_A_PROCESS = 500


class Oracle:
    """A program that answers cases of one kind with what the real scheduler does.

    Args:
        folder: where the programs are.
        kind: of the cases, and the name of the program.
    """

    def __init__(self, folder: Path, kind: str = "cycle") -> None:
        self.program = folder / kind

    def answers(self, cases: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """Answer cases, in order. One at which the program breaks down is answered with an error that says so."""
        return self._run(cases)

    def resolved(self, cases: Sequence[JsonObject]) -> list[JsonObject]:
        """Return queue traces in which every failure names its pod: one that the real queue had handed out by then."""
        return [*self._run(cases, "resolve")]

    def _run(self, cases: Sequence[JsonObject], *arguments: str) -> Iterator[JsonObject]:
        rest = iter(cases)
        while chunk := list(islice(rest, CASES_A_PROCESS)):
            yield from self._run_once(chunk, arguments)

    def _run_once(self, chunk: Sequence[JsonObject], arguments: Sequence[str]) -> Iterator[JsonObject]:
        text = b"".join(msgspec.json.encode(case) + b"\n" for case in chunk)
        done = subprocess.run(
            [self.program, *arguments], input=text, capture_output=True, preexec_fn=_limit_memory, check=False
        )
        lines = done.stdout.splitlines()
        if done.returncode == 0 and len(lines) == len(chunk):
            for line in lines:
                reported: JsonObject = msgspec.json.decode(line)
                yield reported
        elif len(chunk) > 1:
            # A panic in a goroutine of a plugin ends the program: find the case.
            half = len(chunk) // 2
            yield from self._run_once(chunk[:half], arguments)
            yield from self._run_once(chunk[half:], arguments)
        else:
            last = done.stderr.decode(errors="replace")[-2000:]
            yield {
                "id": chunk[0]["id"],
                "error": f"the program ended with code {done.returncode}: {last}",
                "cycles": None,
            }


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
