"""The base class of trace readers: selection, machines, skipped rows with reasons, and the resulting trace."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import ClassVar

import msgspec

from bayplan.base.errors import InputError
from bayplan.formats.files import InputFile
from bayplan.formats.manifest import LoadWarning, WarningKind
from bayplan.formats.trace import Trace
from bayplan.formats.traces.csv_table import CsvTable, RowError
from bayplan.formats.traces.pods import timed_pods
from bayplan.formats.traces.selection import Sample, SelectedTasks, Selection, drawn
from bayplan.formats.traces.shapes import MachineSize, Shape, machine
from bayplan.formats.traces.streams import open_stream
from bayplan.objects.node import Node, NodeStatus

DEFAULT_MACHINE = MachineSize.of(cpu="64", memory="256Gi", gpus=0, pods=1000)
"""The default size of the machine that amounts are fractions of. Published traces hide real sizes, but ratios remain right."""

MAX_CACHED_SHAPES = 100_000
"""Maximum number of cached shapes, so that a trace in which all amounts differ does not use up memory."""

Columns = Sequence[str]
RowHandler = Callable[[CsvTable, list[str]], None]


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading a trace.

    Attributes:
        selection: selects tasks.
        machine: the size of a machine, for amounts that are fractions of it.
        machine_type: the kind of machine that amounts are fractions of, for traces with several kinds; "" for the most
            common kind.
        nodes: the number of machines, drawn from the trace, or generated if it has none; None for all machines of the
            trace.
        skip_invalid: whether to skip and count rows that can't be read, instead of refusing the file.
    """

    selection: Selection = Selection()
    machine: MachineSize = DEFAULT_MACHINE
    machine_type: str = ""
    nodes: int | None = None
    skip_invalid: bool = False


class TraceReader(ABC):
    """Reads the tables of one trace. `reading.read_trace` calls `read` for each file, in the order of `tables`, then `finish`.

    Args:
        options: see `ReadOptions`.
        present: the names of the tables that will be read.

    Attributes:
        name: the name of the format in Trace files.
        title: the title of the trace, for users.
        tables: the columns of each table that is read, in reading order; () if the table is not CSV.
        unused: the tables of the trace that a scheduler does not need, with their content.
        selected: the selected tasks so far.
        nodes: the machines so far.
        skipped: the number of rows left out, by file and reason.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    tables: ClassVar[Mapping[str, Columns]]
    unused: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: ReadOptions, present: Collection[str]) -> None:
        self.options = options
        self.selection = options.selection
        self.selected = SelectedTasks(options.selection)
        self.sample = Sample(options.selection)
        self.nodes: list[Node] = []
        self._machine_names: set[str] = set()
        self.skipped: Counter[tuple[str, str]] = Counter()
        self.present = present
        self._files: list[str] = []
        self._statuses: dict[str, NodeStatus] = {}
        self._shapes: dict[Hashable, Shape] = {}

    @abstractmethod
    def read(self, table: str, file: InputFile) -> None:
        """Read one file of a table.

        Raises:
            InputError: the file can't be read, or a row is invalid; with file, line and column.
        """

    def finish(self) -> Trace:
        """Return the trace. Call after the last file.

        Raises:
            InputError: the trace has fewer machines than `ReadOptions.nodes`.
        """
        trace = Trace(format=self.title, nodes=self._chosen_nodes(), pods=timed_pods(self.selected.tasks()))
        trace.files = self._files
        for (file, reason), count in sorted(self.skipped.items()):
            warning = LoadWarning(kind=WarningKind.SKIPPED_ROWS, where=file, what=reason, problem=f"{count:,} skipped")
            trace.warnings.append(warning)
        return trace

    # --- for readers --------------------------------------------------------------------------------------------------

    def read_csv(
        self,
        file: InputFile,
        columns: Columns,
        handle: RowHandler,
        *,
        header: bool = False,
        optional: Columns = (),
    ) -> None:
        """Call `handle` for each row of a CSV table; see `CsvTable` for the arguments.

        Raises:
            InputError: see `CsvTable.rows`. `handle` may raise RowError.
        """
        self._files.append(file.name)
        with open_stream(file) as stream:
            table = CsvTable(file.name, stream, columns, header=header, optional=optional, invalid=self.raise_or_skip)
            for row in table.rows():
                try:
                    handle(table, row)
                except RowError as problem:
                    self.raise_or_skip(problem)

    def raise_or_skip(self, problem: RowError) -> None:
        """Raise the error about a row, or count the row as skipped if the options say so."""
        if not self.options.skip_invalid:
            raise problem
        self.skip("rows that can't be read")

    def skip(self, what: str) -> None:
        """Count one skipped item of the current file. `what`: the kind of item, in the plural."""
        self.skipped[self._files[-1], what] += 1

    def began(self, file: InputFile) -> None:
        """Record the name of a file that is not read by `read_csv`."""
        self._files.append(file.name)

    def shape(self, key: Hashable, make: Callable[[], Shape]) -> Shape:
        """Return the shape of a row. It is created once for each key (the text of the relevant columns)."""
        found = self._shapes.get(key)
        if found is None:
            if len(self._shapes) >= MAX_CACHED_SHAPES:
                self._shapes.clear()
            found = self._shapes[key] = make()
        return found

    def add_machine(self, name: str, amounts: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Add a machine as a node with the options' maximum number of pods; a machine that was added before is not changed."""
        if name in self._machine_names:
            return
        self._machine_names.add(name)
        offered = {**amounts, "pods": str(self.options.machine.pods)}
        self.nodes.append(machine(name, offered.items(), labels, self._statuses))

    def has_machine(self, name: str) -> bool:
        """Return whether a machine was added. Traces list a machine again when it has changed or comes back."""
        return name in self._machine_names

    def made_machine(self) -> Mapping[str, str]:
        """Return the amounts of a generated machine, for traces without machines and a given number of nodes."""
        size = self.options.machine
        return {"cpu": f"{size.cpu_milli}m", "memory": str(size.memory_bytes)}

    def _chosen_nodes(self) -> list[Node]:
        count = self.options.nodes
        if count is None:
            return self.nodes
        if not self.nodes:
            for number in range(count):
                self.add_machine(f"machine-{number:05}", self.made_machine(), {})
            return self.nodes
        if count > len(self.nodes):
            wanted = f"at most {len(self.nodes):,}, the machines of the trace"
            raise InputError("Trace $.nodes", wanted=wanted, got=f"{count:,}")
        seed = self.selection.seed
        drawn_names = sorted(node.metadata.name for node in self.nodes)
        drawn_names.sort(key=lambda name: drawn(name, seed))
        chosen = set(drawn_names[:count])
        return [node for node in self.nodes if node.metadata.name in chosen]
