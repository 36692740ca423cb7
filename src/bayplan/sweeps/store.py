"""The folder of a sweep: a journal that survives a kill, and a Parquet file of all trials.

The folder has ``sweep.json`` (the plan), ``journal.jsonl`` (one line per finished trial, written at once),
``trials.parquet`` (one row per trial, sorted by number; rewritten from the journal), ``input.json`` (the digests of the
files that the trials read), and with ``--save`` the result directories of the best parameter sets in ``results``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from bayplan.analysis.table_writer import TableWriter
from bayplan.base.errors import InputError
from bayplan.formats.files import find_files
from bayplan.sweeps.objectives import FIGURES, OBJECTIVES
from bayplan.sweeps.plan import SweepPlan
from bayplan.sweeps.space import Value
from bayplan.sweeps.trials import Outcome, Trial

PLAN, INPUT, JOURNAL, TRIALS, RESULTS = "sweep.json", "input.json", "journal.jsonl", "trials.parquet", "results"
MAX_CHANGED = 5
"""The maximum number of changed files that an error names."""


class SweepFolder:
    """The folder of one sweep.

    Args:
        path: the folder; created if it does not exist.
        plan: the plan of the sweep.

    Attributes:
        done: the outcomes in the journal, by trial number, without those that were forgotten.

    Raises:
        InputError: the folder belongs to another sweep, its plan is damaged, or Optuna pursues another objective in its
            unfinished sweep.
    """

    def __init__(self, path: Path, plan: SweepPlan) -> None:
        self.path = path
        self._plan = plan
        self._is_repaired = False
        path.mkdir(parents=True, exist_ok=True)
        stored, text = path / PLAN, msgspec.json.encode(plan, order="sorted")
        before = stored.read_bytes() if stored.exists() else None
        self.done = dict(self._journal())
        if before is not None:
            self._check_plan(before, text)
        if before != text:
            self._replace(PLAN, text)

    def _check_plan(self, before: bytes, now: bytes) -> None:
        """Compare the plan of the folder with that of this sweep; only their objectives may differ.

        Trials have the figures of all objectives, but the objective affects which sets Optuna suggests next.
        """
        plan, wanted = self._plan, "a new folder, or the folder of this sweep"
        try:
            old = msgspec.json.decode(before, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise InputError("--out", got=f"'{self.path}', whose {PLAN} is damaged", wanted=wanted) from None
        if {**old, "objective": plan.objective} != msgspec.json.decode(now):
            raise InputError("--out", got=f"'{self.path}', which contains another sweep", wanted=wanted)
        objective, is_finished = old.get("objective"), len(self.done) == plan.trials * len(plan.seeds)
        if objective != plan.objective and plan.search == "optuna" and not is_finished:
            raise InputError(
                "objective",
                got=plan.objective,
                wanted=f"{objective}, for which Optuna chose the first sets of the unfinished sweep in '{self.path}'",
                hint="another --out",
            )

    def _replace(self, name: str, content: bytes) -> None:
        """Write a file of the folder; if the process is killed, either the old or the new file remains."""
        partial = self.path / f".{name}.partial"
        partial.write_bytes(content)
        partial.replace(self.path / name)

    def _journal(self) -> Iterator[tuple[int, Outcome]]:
        """Yield the finished trials in the journal by number, without a last line that is incomplete."""
        journal = self.path / JOURNAL
        lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                outcome = msgspec.json.decode(line, type=Outcome)
            except (msgspec.DecodeError, UnicodeDecodeError) as problem:
                raise InputError(
                    f"the line is damaged ({problem})",
                    where=f"{journal}:{number}",
                    hint="deleting this line, so that its trial runs again, or another --out",
                ) from None
            yield outcome.trial.number, outcome

    def _repair_journal(self) -> None:
        """Remove an incomplete last line, which a process wrote when it was killed.

        Only before the first line is added: until then, another process may still be writing the journal.
        """
        journal = self.path / JOURNAL
        if journal.exists():
            os.truncate(journal, journal.read_bytes().rfind(b"\n") + 1)

    def check_input(self) -> None:
        """Store the digests of the input, or compare them with those of the finished trials.

        Raises:
            InputError: a file has changed since a trial of this folder read it, or cannot be found.
        """
        stored, found = self.path / INPUT, input_digests(self._plan)
        text = msgspec.json.encode(found)
        old = stored.read_bytes() if stored.exists() else b""  # Earlier versions wrote no file, or left an empty one.
        if old == text:
            return
        if self.done and old:
            try:
                before = msgspec.json.decode(old, type=dict[str, str])
            except (msgspec.DecodeError, UnicodeDecodeError):
                wanted = "a new folder, or the folder of this sweep"
                raise InputError("--out", got=f"'{self.path}', whose {INPUT} is damaged", wanted=wanted) from None
            changed = [name for name in sorted(before.keys() | found) if before.get(name) != found.get(name)]
            if changed:
                more = f" and {len(changed) - MAX_CHANGED:,} more files" if len(changed) > MAX_CHANGED else ""
                names = ", ".join(changed[:MAX_CHANGED]) + more
                raise InputError(
                    "--out",
                    got=f"'{self.path}', whose trials ran before {names} changed",
                    wanted="a new folder, or the same input",
                )
        self._replace(INPUT, text)

    def forget_others(self, trials: Iterable[Trial], total: int) -> None:
        """Forget outcomes that belong to no trial of this sweep: the search of another version chose other parameters.

        Args:
            trials: trials of this sweep.
            total: the number of all its trials.
        """
        wanted = {trial.number: trial for trial in trials}
        self.done = {
            number: outcome
            for number, outcome in self.done.items()
            if number < total and wanted.get(number, outcome.trial) == outcome.trial
        }

    def add(self, outcome: Outcome) -> None:
        """Append the outcome of a finished trial to the journal."""
        if not self._is_repaired:
            self._repair_journal()
            self._is_repaired = True
        self.done[outcome.trial.number] = outcome
        with (self.path / JOURNAL).open("ab") as file:
            file.write(msgspec.json.encode(outcome) + b"\n")

    def write_table(self) -> Path:
        """Write the Parquet file of all finished trials; return its path."""
        # If a signal interrupted `add`, the journal decides: a trial that it lacks runs again.
        journal = dict(self._journal())
        self.done = {number: each for number, each in self.done.items() if journal.get(number) == each}
        outcomes = [self.done[number] for number in sorted(self.done)]
        types = {
            name: _column_type([each.trial.parameters.get(name) for each in outcomes]) for name in self._plan.space
        }
        schema = pa.schema(
            [("trial", pa.int32()), ("candidate", pa.int32()), ("seed", pa.int64())]
            + list(types.items())
            + [("objective", pa.float64())]
            + [(name, pa.float64()) for name in FIGURES]
            + [("digest", pa.string()), ("error", pa.string()), ("seconds", pa.float64())]
        )
        figure = OBJECTIVES[self._plan.objective].figure
        partial = self.path / f".{TRIALS}.partial"
        with TableWriter(partial, schema) as writer:
            for each in outcomes:
                trial, found = each.trial, each.figures
                values = [trial.parameters.get(name) for name in self._plan.space]
                texts = [
                    str(item) if types[name] == pa.string() else item for name, item in zip(types, values, strict=True)
                ]
                numbers = [found.get(name) for name in FIGURES]
                head = [trial.number, trial.candidate, trial.seed, *texts, found.get(figure)]
                writer.add([*head, *numbers, each.digest, each.error, each.seconds])
        partial.replace(self.path / TRIALS)
        return self.path / TRIALS


def input_digests(plan: SweepPlan) -> Mapping[str, str]:
    """Return the digest of each file that the trials of a sweep read, except for tables that a trace names.

    Raises:
        InputError: a file cannot be found.
    """
    paths = [file.path for file in find_files(plan.paths)]
    named = [name for name in (plan.workload, plan.autoscaler, plan.descheduler) if name]
    plugins = [option.rpartition(":")[0] for option in plan.plugins if ":" in option]
    digests = {}
    for path in (*paths, *map(Path, named), *map(Path, plugins)):
        if path is not None and path.is_file():  # A missing file is reported when it is read.
            with path.open("rb") as file:
                digests[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def _column_type(values: list[Value | None]) -> pa.DataType:
    if all(isinstance(each, bool) for each in values):
        return pa.bool_()
    if any(isinstance(each, str | bool) for each in values):
        return pa.string()
    return pa.int64() if all(isinstance(each, int) for each in values) else pa.float64()
