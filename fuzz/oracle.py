"""Runs the programs of `oracle/BIN` (the real scheduler) on a few hundred cases at a time, within a memory limit."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from bayplan.conformance.cases import JsonObject

MEMORY_BYTES = 4_000_000 << 10
"""The memory limit of one process in bytes; the programs retain memory for every case."""

CASES_A_PROCESS = 500


class Oracle:
    """A program that answers cases of one kind with the decisions of the real scheduler.

    Args:
        folder: the folder of the programs.
        kind: the kind of cases, which is the name of the program.
    """

    def __init__(self, folder: Path, kind: str = "cycle") -> None:
        self.program = folder / kind

    def answers(self, cases: Sequence[JsonObject]) -> Iterator[JsonObject]:
        """Yield the answers to cases, in order. A case on which the program crashes gets an answer with an error."""
        return self._run(cases)

    def resolved(self, cases: Sequence[JsonObject]) -> list[JsonObject]:
        """Return queue traces in which every failure names its pod: one that the real queue had popped before."""
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
            # A panic in a goroutine of a plugin ends the program: find the case by bisection.
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
