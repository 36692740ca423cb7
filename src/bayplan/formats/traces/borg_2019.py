"""Google's Borg traces of 2019 (clusterdata-2019): eight cells, a month of events about tasks, reservations and machines.

Source: https://github.com/google/cluster-data (ClusterData2019.md, clusterdata_trace_format_v3.proto). Files are JSON
lines as exported by BigQuery (``instance_events-000000000000.json.gz``; 64-bit numbers may be text), in any order.
Amounts are fractions of the largest machine of all cells (`machine`). Times are in microseconds: the trace starts at
600 s, 0 is before it, and 2**63 - 1 after it.

- `instance_events`, read twice: first to select the instances submitted in the window, then for all their events. A pod
  arrives at the first SUBMIT of an instance, with the request and priority of that event. It runs for the sum of the
  times from SCHEDULE to EVICT, FAIL, FINISH, KILL or LOST; without an end, it runs forever. An instance that was never
  scheduled is deleted at its last end.
- Reservations (alloc instances) are pods, too. Tasks within a reservation are part of it, and are left out.
- `machine_events`: a machine that was added (ADD) before the end of the window is a node with its capacity at that
  time; REMOVE and UPDATE are not modelled.
- `machine_attributes`, if given: constraints of tasks become required node affinity. The attributes that constraints
  name become labels, with the first value of each. Without this table, constraints are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, ClassVar, TypeVar

import msgspec
from msgspec import Meta

from bayplan.formats.files import InputFile
from bayplan.formats.trace import Trace
from bayplan.formats.traces.borg_constraints import Attributes, MachineAttribute, MachineConstraint
from bayplan.formats.traces.csv_table import RowError
from bayplan.formats.traces.earliest_keys import EarliestKeys
from bayplan.formats.traces.reader import Columns, ReadOptions, TraceReader
from bayplan.formats.traces.selection import Task
from bayplan.formats.traces.shapes import Amounts, Shape, cpu_text, share_text
from bayplan.formats.traces.streams import line_blocks, open_stream

AFTER_TRACE = 2**63 - 1
PLATFORM = "trace.bayplan.io/platform"
SWITCH = "trace.bayplan.io/switch"
_MICROSECOND_NS = 1000
_MILLI = 1000

_NAMES = (
    "SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST", "UPDATE_PENDING", "UPDATE_RUNNING",
)  # fmt: skip
SUBMIT, SCHEDULE = 0, 3
ENDS = (4, 5, 6, 7, 8)
EVENT_TYPES: Mapping[int | str, int] = {
    key: number for number, name in enumerate(_NAMES) for key in (number, str(number), name)
}
ADD = (1, "1", "ADD")

Row = TypeVar("Row", bound=msgspec.Struct)
Micros = Annotated[int, Meta(ge=0, le=AFTER_TRACE)]
Share = Annotated[float, Meta(ge=0.0, le=1000.0)]


class Resources(msgspec.Struct, gc=False):
    """Fractions of the largest machine."""

    cpus: Share | None = None
    memory: Share | None = None


class EventKey(msgspec.Struct, gc=False):
    """The fields of an instance event that determine whether it is needed. Decoding only these is faster."""

    collection_id: int
    instance_index: int
    time: Micros = 0
    type: int | str = SUBMIT
    alloc_collection_id: int | None = None


class InstanceEvent(msgspec.Struct, gc=False):
    """An instance event, with the fields from which pods are created.

    Attributes:
        collection_id: the collection (a job or an alloc set) of the instance.
        instance_index: the number of the instance in the collection.
        time: the time in microseconds; see the module.
        type: a number or a name, see `EVENT_TYPES`.
        priority: a larger number is more important.
        resource_request: fractions of the largest machine; None if the event has none.
        constraint: constraints on the attributes of machines.
    """

    collection_id: int
    instance_index: int
    time: Micros = 0
    type: int | str = SUBMIT
    priority: Annotated[int, Meta(ge=0, le=10**9)] = 0
    resource_request: Resources | None = None
    constraint: tuple[MachineConstraint, ...] = ()


class MachineEvent(msgspec.Struct):
    """A machine event, with the fields that are used."""

    machine_id: int
    time: Micros = 0
    type: int | str = 0
    switch_id: str = ""
    platform_id: str = ""
    capacity: Resources | None = None


class _Instance(msgspec.Struct):
    """The events of an instance so far, as (time, type), and its first SUBMIT."""

    events: list[tuple[int, int]]
    submitted: InstanceEvent | None = None


class Reader(TraceReader):
    """Reads a Borg trace of 2019; the module describes the tables."""

    name = "google-borg-2019"
    title = "Google Borg 2019"
    tables: ClassVar[Mapping[str, Columns]] = {"machine_events": (), "instance_events": (), "machine_attributes": ()}
    unused: ClassVar[Mapping[str, str]] = {
        "instance_usage": "measured usage",
        "collection_events": "events of whole jobs, whose tasks are in instance_events",
    }

    def __init__(self, options: ReadOptions, present: Collection[str]) -> None:
        super().__init__(options, present)
        self._event_files: list[InputFile] = []
        self._instances: dict[tuple[int, int], _Instance] = {}
        self._machines: dict[int, MachineEvent] = {}
        self._attributes = Attributes()

    def read(self, table: str, file: InputFile) -> None:
        """Read one file of a table. Files of instance events are only recorded, because they are read twice."""
        self.began(file)
        if table == "machine_events":
            for machine in self._rows(file, MachineEvent):
                self._machine(machine)
        elif table == "instance_events":
            self._event_files.append(file)
        else:
            self._read_events()
            for attribute in self._rows(file, MachineAttribute):
                self._attributes.add(attribute)

    def finish(self) -> Trace:
        """Return the trace, after reading the recorded files of instance events."""
        self._read_events()
        for number, machine in self._machines.items():
            labels = {PLATFORM: machine.platform_id[:63], SWITCH: machine.switch_id[:63]}
            amounts = dict(self._amounts(machine.capacity or Resources()))
            self.add_machine(f"machine-{number}", amounts, {**labels, **self._attributes.labels(number)})
        for (collection, index), instance in self._instances.items():
            self._add(collection, index, instance)
        self._instances = {}
        return super().finish()

    def _machine(self, machine: MachineEvent) -> None:
        until_ns = self.selection.until_ns
        if machine.type not in ADD or (until_ns is not None and machine.time * _MICROSECOND_NS >= until_ns):
            return
        known = self._machines.get(machine.machine_id)
        if known is None or machine.time < known.time:
            self._machines[machine.machine_id] = machine

    # --- events -------------------------------------------------------------------------------------------------------

    def _read_events(self) -> None:
        files, self._event_files = self._event_files, []
        if not files:
            return
        selection = self.selection
        # Only later events show whether an instance submitted before the window was still running in it.
        before = selection.running and selection.from_ns > 0
        first: EarliestKeys[tuple[int, int]] = EarliestKeys(None if before else selection.limit)
        from_us = 0 if before else selection.from_ns // _MICROSECOND_NS
        until_us = AFTER_TRACE if selection.until_ns is None else selection.until_ns // _MICROSECOND_NS
        for file in files:
            for event in self._rows(file, EventKey):
                if EVENT_TYPES.get(event.type) != SUBMIT or not from_us <= event.time < until_us:
                    continue
                if first.horizon is not None and event.time > first.horizon:
                    continue
                if not self.sample.has(str(event.collection_id)):
                    continue
                if event.alloc_collection_id:
                    self.skip("tasks within a reservation")
                    continue
                first.add((event.collection_id, event.instance_index), event.time)
        self._instances = {key: _Instance([]) for key in first.keys()}  # noqa: SIM118 - no dictionary
        for file in files:
            for full in self._rows(file, InstanceEvent, read_as=EventKey):
                instance = self._instances.get((full.collection_id, full.instance_index))
                if instance is not None and full.time != AFTER_TRACE:
                    self._note(instance, full)

    def _note(self, instance: _Instance, event: InstanceEvent) -> None:
        number = EVENT_TYPES.get(event.type)
        if number is None:
            what = f"event of instance {event.collection_id}.{event.instance_index}"
            raise RowError(what, wanted=f"one of the types {', '.join(_NAMES)}", got=repr(event.type))
        if number == SUBMIT and (instance.submitted is None or event.time < instance.submitted.time):
            instance.submitted = event
        if number in (SUBMIT, SCHEDULE) or number in ENDS:
            instance.events.append((event.time, number))
        self._attributes.need(event.constraint)

    def _add(self, collection: int, index: int, instance: _Instance) -> None:
        submitted = instance.submitted
        if submitted is None or submitted.resource_request is None:
            self.skip("instances without a request")
            return
        arrival_ns = submitted.time * _MICROSECOND_NS
        run_time_ns, gone_at_ns, end_ns = _times(instance.events)
        requirements = self._attributes.requirements(submitted.constraint)
        if len(requirements) < len(submitted.constraint):
            self.skip("constraints on machine attributes that are missing or not comparable")
        self.selected.add(
            Task(
                name=f"{collection}-{index}",
                job=str(collection),
                shape=Shape(
                    amounts=self._amounts(submitted.resource_request),
                    requirements=requirements,
                    priority=submitted.priority,
                ),
                arrival_ns=arrival_ns,
                run_time_ns=run_time_ns,
                gone_at_ns=gone_at_ns,
                end_ns=end_ns,
            )
        )

    def _amounts(self, share: Resources) -> Amounts:
        size = self.options.machine
        return (
            ("cpu", cpu_text((share.cpus or 0.0) * size.cpu_milli / _MILLI)),
            ("memory", share_text(share.memory or 0.0, size.memory_bytes)),
        )

    # --- lines --------------------------------------------------------------------------------------------------------

    def _rows(self, file: InputFile, kind: type[Row], *, read_as: type[msgspec.Struct] | None = None) -> Iterator[Row]:
        """Yield the rows of a file of JSON lines.

        Args:
            file: the file to read.
            kind: the struct of a row.
            read_as: the struct with which the file was read before. Rows that were already invalid then are not counted
                again.

        Raises:
            InputError: a line is not a valid row; with file and line.
        """
        decoder = msgspec.json.Decoder(kind, strict=False)
        earlier = None if read_as is None else msgspec.json.Decoder(read_as, strict=False)
        before = 0
        with open_stream(file) as stream:
            for block in line_blocks(stream, file.name):
                try:
                    rows = decoder.decode_lines(block)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    rows = self._valid(decoder, earlier, block, file.name, before)
                yield from rows
                before += block.count(b"\n")

    def _valid(
        self,
        decoder: msgspec.json.Decoder[Row],
        earlier: msgspec.json.Decoder[msgspec.Struct] | None,
        block: bytes,
        name: str,
        before: int,
    ) -> list[Row]:
        """Return the valid rows of a block. Refuse or count the invalid ones."""
        rows: list[Row] = []
        for number, line in enumerate(block.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                rows.append(decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
                if earlier is None or _is_valid(earlier, line):
                    where, got = f"{name}:{before + number}", str(problem)
                    self.raise_or_skip(RowError("event", where=where, wanted="a JSON object in one line", got=got))
        return rows


def _is_valid(decoder: msgspec.json.Decoder[msgspec.Struct], line: bytes) -> bool:
    try:
        decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _times(events: list[tuple[int, int]]) -> tuple[int | None, int | None, int | None]:
    """Return run time, deletion time and end of an instance from its events, in any order.

    The run time is None if the instance never ran or had not ended; the deletion time is None unless it never ran.
    """
    total, since = 0, None
    scheduled, ended = False, None
    for time, number in sorted(events):
        if number == SCHEDULE:
            since, scheduled, ended = time, True, None
        elif number in ENDS:
            if since is not None:
                total += time - since
            since, ended = None, time
        elif ended is not None:
            # The instance was submitted again.
            ended = None
    if since is not None or ended is None:
        # The instance was running or waiting at the end of the trace.
        return None, None, None
    end_ns = ended * _MICROSECOND_NS
    return (total * _MICROSECOND_NS, None, end_ns) if scheduled else (None, end_ns, end_ns)
