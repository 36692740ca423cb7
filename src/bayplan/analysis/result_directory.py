"""Read a result directory: tables as Arrow tables, decisions as `bayplan.engine.decision.Decision`.

No plugin is needed: reasons and normalised scores are in the files (see `result_layout`). Files are read on first use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.analysis.export import is_result
from bayplan.analysis.free_amounts import requested_by_time_lines
from bayplan.analysis.result_layout import DECISIONS, OPTIONAL_TABLES, OPTIONS, RECORDS, SUMMARY, TABLES
from bayplan.analysis.run_facts import FORMAT, RunFacts
from bayplan.analysis.run_source import numbered_records_of
from bayplan.analysis.stored_records import StoredRecords, read_table
from bayplan.analysis.volume_places import StoredObjects
from bayplan.base.errors import InputError
from bayplan.engine.decision import Decision, Outcome, Record, rebuild
from bayplan.engine.records import RecordLevel
from bayplan.objects.kinds import KINDS
from bayplan.objects.meta import KubernetesObject, ObjectMeta
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.requests import Amounts
from bayplan.sim.result import PodFate, PodTimeline, SimulatedEvent

if TYPE_CHECKING:
    import pyarrow as pa

NAMES_OF_FIELDS = {"pod": "key"}
"""Columns of ``pods.parquet`` whose names differ from the fields of `PodTimeline`."""


def open_result(path: Path | str) -> ResultDirectory:
    """Open a result directory.

    Raises:
        InputError: the path is not a result directory, or a later version wrote it.
    """
    directory = Path(path)
    if not directory.is_dir():
        if not directory.exists():
            raise InputError(f"{directory}: no such directory", hint="bayplan simulate PATH --out DIRECTORY")
        raise InputError("result directory", where=str(directory), got="a file", wanted="a directory")
    if not is_result(directory):
        is_sweep = (directory / "sweep.json").exists()
        hint = "bayplan sweep FILE --out DIRECTORY --save N" if is_sweep else "bayplan simulate PATH --out DIRECTORY"
        raise InputError(
            "result directory",
            where=str(directory),
            got=f"a folder {'with an invalid' if (directory / SUMMARY).exists() else 'without'} {SUMMARY}",
            wanted="a result of bayplan simulate --out",
            hint=hint,
        )
    written = msgspec.json.decode((directory / SUMMARY).read_bytes())["format"]
    if written > FORMAT:
        raise InputError(
            "format of the result",
            where=str(directory),
            got=str(written),
            wanted=f"at most {FORMAT}",
            hint="a newer Bayplan",
        )
    return ResultDirectory(directory)


class ResultDirectory:
    """A result that was written with ``--out``. Created by `open_result`.

    Attributes:
        path: the path of the directory.
        facts: the facts that the report shows.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts = msgspec.json.decode((path / SUMMARY).read_bytes(), type=RunFacts)

    @property
    def level(self) -> RecordLevel:
        """Return the record level of the run."""
        return RecordLevel[self.facts.decisions.record_level.upper()]

    @property
    def end_ns(self) -> int:
        """Return the virtual time at the end of the run."""
        return self.facts.end_ns

    @property
    def start_ns(self) -> int:
        """Return the virtual time at the start of the run."""
        return self.facts.start_ns

    def table(self, name: str) -> pa.Table:
        """Return a table by name: decisions, pods, templates, nodes, usage, events, objects, timeline, scaling or descheduled.

        Raises:
            InputError: there is no table of this name, or the run did not write it.
        """
        if name in OPTIONAL_TABLES and not self.has_table(name):
            hint = f"bayplan simulate {OPTIONS[name]} --out"
            raise InputError(f"has no {name} table", where=str(self.path), hint=hint)
        if name not in TABLES and name not in OPTIONAL_TABLES:
            raise InputError("table", got=f"'{name}'", wanted=f"one of {', '.join(TABLES)}")
        return read_table(self.path / f"{name}.parquet")

    def has_table(self, name: str) -> bool:
        """Return whether the result has a table."""
        return (self.path / f"{name}.parquet").exists()

    @cached_property
    def records(self) -> Sequence[Record]:
        """Return the summary records of all cycles, in order."""
        columns = self.table("decisions").to_pydict()
        columns["outcome"] = [Outcome[name.upper()] for name in columns["outcome"]]
        columns["victims"] = [tuple(victims) for victims in columns["victims"]]
        columns["frame"] = [-1 if frame is None else frame for frame in columns["frame"]]
        rows = zip(*(columns[name] for name in DECISIONS.names), strict=True)
        return [Record(*row) for row in rows]

    def records_of(self, key: str) -> list[tuple[int, Record]]:
        """Return the summary records of all pods that had this key, in order, each with its number."""
        return numbered_records_of(self.records, key)

    def decision(self, number: int) -> Decision:
        """Return the full record of a cycle, as `bayplan.engine.records.Records.decision` does.

        Raises:
            LookupError: the cycle has no full record.
        """
        record = self.records[number]
        if record.frame < 0:
            raise LookupError(f"cycle {number} of {record.pod} has no full record")
        return rebuild(record, self._stored.frame(record.frame))

    @cached_property
    def _stored(self) -> StoredRecords:
        return StoredRecords(self.path / RECORDS)

    @cached_property
    def pods(self) -> Sequence[PodTimeline]:
        """Return the timelines of all pods by arrival. Of the pod itself, only name, namespace, labels and spec are stored."""
        table = self.table("pods").drop_columns(["requests"])
        names = [NAMES_OF_FIELDS.get(name, name) for name in table.column_names]
        columns = [column.to_pylist() for column in table.columns]
        return [self._timeline(dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]

    def message_of(self, pod: PodTimeline) -> str:
        """Return why a pending pod has no node; for any other pod, the message of its last failed attempt or ""."""
        return pod.message

    def requests_of(self, pod: PodTimeline) -> Amounts:
        """Return a pod's requests, in units of the state."""
        rows, requests = self._requests
        return dict(requests[rows[pod.uid]].as_py())

    def requested_before(self, number: int, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Return the amounts requested just before a decision, by node and resource; ``pods`` is the number of pods."""
        return requested_by_time_lines(self, number, nodes)

    @cached_property
    def _requests(self) -> tuple[dict[str, int], pa.Array]:
        table = self.table("pods")
        rows = {uid: row for row, uid in enumerate(table.column("uid").to_pylist())}
        return rows, table.column("requests").combine_chunks()

    def _timeline(self, row: dict[str, Any]) -> PodTimeline:
        template, labels = row.pop("template"), row.pop("labels", None)
        row["fate"] = PodFate(row["fate"])
        if template is not None:
            namespace, _, name = row["key"].rpartition("/")
            metadata = ObjectMeta(name=name, namespace=namespace, uid=row["uid"], labels=dict(labels or ()))
            row["pod"] = Pod(metadata=metadata, spec=self._templates[template])
        return PodTimeline(**row)

    @cached_property
    def _templates(self) -> list[PodSpec]:
        decoder = msgspec.json.Decoder(PodSpec)
        return [decoder.decode(text) for text in self.table("templates").column("spec").to_pylist()]

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Return the nodes that exist at the end of the run, by name, with labels, price, spec and allocatable resources."""
        decoder = msgspec.json.Decoder(Node)
        texts = self.table("nodes").column("object").to_pylist()
        found = [decoder.decode(text) for text in texts if text is not None]
        return {node.metadata.name: node for node in found}

    @property
    def has_objects(self) -> bool:
        """Return whether the result has the objects that are neither nodes nor pods. Older versions did not write them."""
        return self.has_table("objects")

    @cached_property
    def objects(self) -> Sequence[KubernetesObject]:
        """Return the objects at the end of the run that are neither nodes nor pods; () if they were not written."""
        if not self.has_objects:
            return ()
        structs = {kind.kind: kind.struct for kind in KINDS}
        columns = self.table("objects")
        kinds, texts = columns.column("kind").to_pylist(), columns.column("object").to_pylist()
        return [
            msgspec.json.decode(text, type=structs[kind])
            for kind, text in zip(kinds, texts, strict=True)
            if kind in structs
        ]

    @cached_property
    def catalog(self) -> StoredObjects:
        """Return a lookup of claims, volumes and other objects by kind and key."""
        return StoredObjects({(type(item), item.key): item for item in self.objects})

    @cached_property
    def events(self) -> Sequence[SimulatedEvent]:
        """Return the Kubernetes events, in the order of their first occurrence."""
        return [SimulatedEvent(**row) for row in self.table("events").to_pylist()]

    def __repr__(self) -> str:
        return f"ResultDirectory({str(self.path)!r})"
