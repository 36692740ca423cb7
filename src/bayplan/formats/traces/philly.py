"""Philly: deep learning jobs on Microsoft's GPU clusters, August to December 2017.

Source: https://github.com/msr-fiddle/philly-traces (README.md and its notebook). Jobs request only GPUs
(`nvidia.com/gpu`): the trace has no CPU and memory requests. Times are local, without a time zone, and count from
2017-08-07 00:00:00.

- `cluster_job_log`: a JSON list of jobs, read job by job. A job that used several servers in its first attempt becomes
  a pod for each server, with the number of GPUs used there; these pods need not start together. They arrive at
  `submitted_time` and run for the sum of all attempts; if the last attempt has no end, the job was still running. Jobs
  without attempts have no GPUs and are ignored.
- `cluster_machine_list`: nodes with GPUs; CPU and memory are those of `machine`. `single GPU mem` becomes a label.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import ClassVar

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.formats.files import InputFile
from bayplan.formats.traces.csv_table import CsvTable, RowError
from bayplan.formats.traces.reader import Columns, TraceReader
from bayplan.formats.traces.selection import Task
from bayplan.formats.traces.shapes import Shape
from bayplan.formats.traces.streams import blocks, open_stream

GPU = "nvidia.com/gpu"
GPU_MEMORY = "trace.bayplan.io/gpu-memory"
START = datetime(2017, 8, 7)
MAX_JOB_BYTES = 2**24
_SPACES = " \t\r\n"


class Detail(msgspec.Struct):
    """The GPUs that an attempt used on one server."""

    gpus: list[str]


class Attempt(msgspec.Struct):
    """One run of a job. Unknown times are empty, null or ``None``."""

    detail: list[Detail]
    start_time: str | None = None
    end_time: str | None = None


class LoggedJob(msgspec.Struct):
    """A job of `cluster_job_log`, with the fields that are used."""

    jobid: str
    submitted_time: str
    attempts: list[Attempt]
    vc: str = ""


class Reader(TraceReader):
    """Reads the Philly trace; the module describes the tables."""

    name = "philly"
    title = "Philly"
    tables: ClassVar[Mapping[str, Columns]] = {
        "cluster_machine_list": ("machineId", "number of GPUs", "single GPU mem"),
        "cluster_job_log": (),
    }
    unused: ClassVar[Mapping[str, str]] = {
        "cluster_gpu_util": "measured usage",
        "cluster_cpu_util": "measured usage",
        "cluster_mem_util": "measured usage",
    }

    def read(self, table: str, file: InputFile) -> None:
        """Read one file of a table."""
        if table == "cluster_machine_list":
            self.read_csv(file, self.tables[table], self._machine, header=True)
            return
        self.began(file)
        for line, item in json_items(file):
            try:
                self._job(f"{file.name}:{line}", item)
            except RowError as problem:
                self.raise_or_skip(problem)

    def made_machine(self) -> Mapping[str, str]:
        """Return the amounts of a generated machine, including the GPUs of the options."""
        gpus = self.options.machine.gpus
        return {**super().made_machine(), **({GPU: str(gpus)} if gpus else {})}

    def _machine(self, table: CsvTable, row: list[str]) -> None:
        name, gpus, memory = (text.strip() for text in row)
        amounts = {**super().made_machine(), GPU: str(table.whole(gpus, "number of GPUs"))}
        self.add_machine(name, amounts, {GPU_MEMORY: memory})

    def _job(self, where: str, item: object) -> None:
        try:
            job = msgspec.convert(item, LoggedJob)
        except (msgspec.ValidationError, UnicodeEncodeError) as problem:  # The latter: half of a surrogate pair.
            raise RowError("job", where=where, wanted="jobid, submitted_time, attempts", got=str(problem)) from None
        if not job.jobid.isprintable():
            # Half of a surrogate pair, for example, can't be written to a file.
            raise RowError("jobid", where=where, wanted="a name", got=ascii(job.jobid))
        if not self.sample.has(job.jobid):
            return
        arrival_ns = _time_ns(job.submitted_time, where, "submitted_time")
        if arrival_ns is None:
            raise RowError("submitted_time", where=where, wanted="a time: 2017-10-07 01:11:39", got="none")
        if arrival_ns >= self.selected.horizon_ns:
            return
        gpus = [len(each.gpus) for each in job.attempts[0].detail if each.gpus] if job.attempts else []
        if not gpus:
            self.skip("jobs without an attempt, which have no GPUs")
            return
        run_time_ns, end_ns = _run(job, where)
        for number, count in enumerate(gpus):
            self.selected.add(
                Task(
                    name=f"{job.jobid}-{number}" if len(gpus) > 1 else job.jobid,
                    job=job.jobid,
                    shape=self.shape(count, partial(_shape, count)),
                    arrival_ns=arrival_ns,
                    run_time_ns=run_time_ns,
                    end_ns=end_ns,
                )
            )


def _shape(gpus: int) -> Shape:
    return Shape(amounts=((GPU, str(gpus)),))


def _run(job: LoggedJob, where: str) -> tuple[int | None, int | None]:
    """Return the total run time of all attempts, and the end of the last attempt; both None if it was still running."""
    total, end_ns = 0, None
    for attempt in job.attempts:
        begin_ns = _time_ns(attempt.start_time, where, "start_time")
        end_ns = _time_ns(attempt.end_time, where, "end_time")
        if begin_ns is not None and end_ns is not None:
            if end_ns < begin_ns:
                got, wanted = repr(attempt.end_time), "a time at or after start_time"
                raise RowError("end_time", where=where, wanted=wanted, got=got)
            total += end_ns - begin_ns
    return (total, end_ns) if end_ns is not None else (None, None)


def _time_ns(text: str | None, where: str, what: str) -> int | None:
    if not text or text == "None":
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is not None:
        raise RowError(what, where=where, wanted="a time: 2017-10-07 01:11:39", got=repr(text))
    since = time - START
    return (since.days * 86_400 + since.seconds) * SECOND_NS


# --- a long list ------------------------------------------------------------------------------------------------------


def json_items(file: InputFile) -> Iterator[tuple[int, object]]:
    """Yield the items of a JSON list, each with its first line. At most one block of the file and one item are in memory.

    Raises:
        InputError: the file is not a list, the JSON is invalid, or an item exceeds `MAX_JOB_BYTES`; with file and line.
    """
    with open_stream(file) as stream:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        source = blocks(stream, file.name)
        yield from _Items(file.name, (decoder.decode(block) for block in source)).items()


class _Items:
    """Splits a JSON list into its items while it is read."""

    def __init__(self, name: str, texts: Iterator[str]) -> None:
        self._name = name
        self._texts = texts
        self._text = ""
        self._at = 0
        self._line = 1
        self._decode = json.JSONDecoder().raw_decode

    def items(self) -> Iterator[tuple[int, object]]:
        self._expect("[", "a JSON list")
        if self._next() == "]":
            return
        while True:
            self._next()
            line = self._line
            yield line, self._item()
            following = self._next()
            if following == "]":
                return
            self._expect(",", "',' or ']' after a job")

    def _item(self) -> object:
        while True:
            try:
                item, end = self._decode(self._text, self._at)
            except (json.JSONDecodeError, RecursionError) as problem:
                # The item may continue in the next block.
                if len(self._text) - self._at > MAX_JOB_BYTES or not self._more():
                    got = problem.msg.lower() if isinstance(problem, json.JSONDecodeError) else "deep nesting"
                    raise self._broken("complete JSON, with jobs of at most 16 MiB", got) from None
                continue
            self._skip(end)
            return item

    def _next(self) -> str:
        """Return the next character that is not a space, without consuming it; "" at the end of the file."""
        while True:
            at = self._at
            while at < len(self._text) and self._text[at] in _SPACES:
                at += 1
            self._skip(at)
            if at < len(self._text):
                return self._text[at]
            if not self._more():
                return ""

    def _expect(self, character: str, wanted: str) -> None:
        found = self._next()
        if found != character:
            raise self._broken(wanted, repr(found) if found else "the end of the file")
        self._skip(self._at + 1)

    def _skip(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _more(self) -> bool:
        try:
            text = next(self._texts, None)
        except UnicodeDecodeError:
            raise self._broken("UTF-8", "another encoding") from None
        if text is None:
            return False
        self._text, self._at = self._text[self._at :] + text, 0
        return True

    def _broken(self, wanted: str, got: str) -> InputError:
        return InputError("job log", where=f"{self._name}:{self._line}", wanted=wanted, got=got)
