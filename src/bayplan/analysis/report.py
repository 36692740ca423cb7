"""The report on a run, for a terminal, a pipe or an issue: 80 columns, and colours only on a terminal.

`render_report` renders `RunFacts` with Rich; ``summary.json`` of a result directory has the same facts without
truncation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.analysis.fragmentation import FragmentationFacts, ShapeFacts
from bayplan.analysis.grouped_problems import group_warnings
from bayplan.analysis.pending import PendingFacts
from bayplan.analysis.run_facts import RunFacts, run_facts
from bayplan.analysis.text_layout import WIDTH, add
from bayplan.analysis.units import format_amount, format_duration, format_share
from bayplan.analysis.utilisation import UtilisationFacts
from bayplan.analysis.waits import WaitFacts
from bayplan.base.build import build_name
from bayplan.base.counted_nouns import format_count, plural
from bayplan.formats.manifest import WarningKind
from bayplan.sim.result import SimulationResult, WallClock

SHOWN_GROUPS = 8
SHOWN_ZONES = 8
SHOWN_SHAPES = 5
SHOWN_WARNINGS = 8
SHOWN_KINDS = 12
"""Maximum number of entries shown; the rest is counted."""

NOTES = frozenset(kind.value for kind in WarningKind if kind.is_note)

ALWAYS_SHOWN = ("pods", "cpu", "memory")
"""Resources that are shown even if no pod requests them."""


def print_report(result: SimulationResult, console: Console | None = None, *, facts: RunFacts | None = None) -> None:
    """Print the report on a run to a console (standard output by default), including wall-clock time.

    `facts`: the facts of the result, if they are already computed.
    """
    console = console or report_console()
    print_parts(console, render_report(facts or run_facts(result), result.wall))


def print_parts(console: Console, parts: Sequence[RenderableType]) -> None:
    """Print renderables one below the other. Unless the console is a terminal, strip trailing spaces."""
    if console.is_terminal:
        console.print(*parts, sep="\n")
        return
    with console.capture() as printed:
        console.print(*parts, sep="\n")
    console.file.write("".join(f"{line.rstrip()}\n" for line in printed.get().splitlines()))


def report_console() -> Console:
    """Return a console on standard output: as wide as the terminal, or `WIDTH` columns of plain text without one."""
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def render_report(facts: RunFacts, wall: WallClock | None = None) -> list[RenderableType]:
    """Render the report as a list of parts.

    Args:
        facts: the facts of the run.
        wall: the wall-clock time of the run; None to leave it out.
    """
    parts: list[RenderableType] = [_title(facts), _overview(facts, wall)]
    sections: list[tuple[str, Sequence[RenderableType]]] = [
        (f"Pending: {format_count(facts.pods.waiting, 'pod')}", _pending(facts)),
        ("Utilisation: requested and allocatable", _utilisation(facts.utilisation)),
        ("Fragmentation: idle amounts, and the unusable part of them", _fragmentation(facts.fragmentation)),
        ("Warnings about the input", _input_warnings(facts)),
        ("Controller errors", _failures(facts)),
    ]
    for heading, body in sections:
        if body:
            parts += [Text(), Text(heading, style="bold"), *(Padding(part, (0, 0, 0, 2)) for part in body)]
    return parts


def _title(facts: RunFacts) -> Text:
    return Text.assemble(
        (f"bayplan {facts.version}", "bold"),
        f" (kube-scheduler {facts.kubernetes}), seed {facts.seed}, digest {facts.digest}",
    )


def _grid() -> Table:
    return Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)


def _figures(*columns: str) -> Table:
    """Return an empty table with a column of names on the left, which fold if necessary, and right-aligned columns of numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
    table.add_column(overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _overview(facts: RunFacts, wall: WallClock | None) -> Table:
    pods, decisions, attempts = facts.pods, facts.decisions, facts.attempts
    table = _grid()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    span = format_duration(facts.end_ns - facts.start_ns)
    ended = f"; ended because {facts.stopped}" if facts.stopped else ""
    add(table, "time", f"{span} of virtual time{ended}")
    add(table, "nodes", _node_text(facts))
    came = f", {pods.imported:,} of them with a node in the input" if pods.imported else ""
    add(table, "pods", f"{pods.total:,}{came}")
    for name in ("placed", "succeeded", "failed", "deleted"):
        count = getattr(pods, name)
        if count or name == "placed":
            preempted = f", {pods.evicted:,} of them preempted" if name == "deleted" and pods.evicted else ""
            add(table, f"  {name}", f"{count:,}{preempted}")
    add(table, "  pending", Text(f"{pods.waiting:,}", style="red" if pods.waiting else ""))
    add(table, "waited", _wait_text(facts.waits, "arrival to binding", pods.bound))
    if facts.still_waiting.pods:
        add(table, "still pending", _wait_text(facts.still_waiting, "until the end", facts.still_waiting.pods))
    add(table, "decisions", _decision_text(facts, wall))
    if wall is not None:
        add(table, "build", build_name())
    if attempts.repeated:
        more = f"{format_count(attempts.repeated, 'pod')} more than once, {attempts.most_pod} {attempts.most:,} times"
        add(table, "attempts", f"{attempts.total:,} for {format_count(attempts.pods, 'pod')}; {more}")
    if decisions.record_level != "off" and decisions.total:
        add(table, "records", f"{decisions.record_level}, {decisions.bytes_per_record:,.0f} bytes each")
    return table


def _node_text(facts: RunFacts) -> str:
    nodes = facts.nodes
    text = f"{nodes.total:,}"
    if nodes.zones:
        text += f" in {format_count(nodes.zones, 'zone')}"
    return f"{text}; {nodes.removed:,} removed" if nodes.removed else text


def _wait_text(waits: WaitFacts, span: str, pods: int) -> str:
    if not pods:
        return "no pod got a node in this run"
    median, p95, longest = (format_duration(value) for value in (waits.median_ns, waits.p95_ns, waits.max_ns))
    return f"median {median}, p95 {p95}, max {longest} ({span}, {format_count(pods, 'pod')})"


def _decision_text(facts: RunFacts, wall: WallClock | None) -> str:
    decisions = facts.decisions
    named = [("scheduled", decisions.scheduled), ("unschedulable", decisions.unschedulable)]
    named += [(plural("error", decisions.errors), decisions.errors), ("skipped", decisions.skipped)]
    text = f"{decisions.total:,}"
    parts = [f"{count:,} {name}" for name, count in named if count]
    if parts:
        text += f": {', '.join(parts)}"
    if wall is not None and wall.simulate_seconds > 0 and decisions.total:
        rate = decisions.total / wall.simulate_seconds
        text += f"; {rate:,.0f} a second ({wall.simulate_seconds:.2f} s, and {wall.load_seconds:.2f} s for loading)"
    return text


def _pending(facts: RunFacts) -> list[RenderableType]:
    if not facts.pending:
        return []
    table = _grid()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for group in facts.pending[:SHOWN_GROUPS]:
        add(table, f"{group.pods:,}", _pending_text(group))
    hidden = facts.pending_groups - min(len(facts.pending), SHOWN_GROUPS)
    if hidden:
        add(table, "", Text(f"... and {hidden:,} more messages", style="dim"))
    return [table]


def _pending_text(group: PendingFacts) -> Text:
    named = ", ".join(group.examples)
    more = group.pods - len(group.examples)
    examples = f"{named} and {more:,} more" if more > 0 else named
    state = "" if group.fate == "pending" else f" ({group.fate})"
    return Text.assemble(f"{group.message}{state}\n", (examples, "dim"))


def _utilisation(rows: Sequence[UtilisationFacts]) -> list[RenderableType]:
    total = [row for row in rows if row.zone is None]
    shown = [row for row in total if row.peak_requested or row.resource in ALWAYS_SHOWN]
    if not any(row.allocatable or row.peak_requested for row in shown):
        return []
    table = _figures("requested", "of", "now", "mean", "peak")
    for row in shown:
        add(table, *_utilisation_cells(row, row.resource), style="")
        zones = [zone for zone in rows if zone.zone is not None and zone.resource == row.resource]
        zones = [zone for zone in zones if zone.allocatable or zone.peak_requested]
        if len(zones) < 2:
            continue
        for zone in zones[:SHOWN_ZONES]:
            add(table, *_utilisation_cells(zone, _zone_label(zone)), style="dim")
        if len(zones) > SHOWN_ZONES:
            add(table, f"  ... {len(zones) - SHOWN_ZONES:,} more zones", style="dim")
    unasked = [row.resource for row in total if row not in shown and row.allocatable]
    parts: list[RenderableType] = [table]
    if unasked:
        parts.append(Text(f"not requested: {', '.join(unasked)}", style="dim"))
    return parts


def _zone_label(row: UtilisationFacts) -> str:
    return f"  {row.zone or '(no zone)'} ({format_count(row.nodes, 'node')})"


def _utilisation_cells(row: UtilisationFacts, label: str) -> list[str]:
    return [
        label,
        format_amount(row.resource, row.requested),
        format_amount(row.resource, row.allocatable),
        format_share(row.share),
        format_share(row.mean_share),
        format_share(row.peak_share),
    ]


def _fragmentation(facts: FragmentationFacts) -> list[RenderableType]:
    parts: list[RenderableType] = []
    idle = [row for row in facts.resources if row.idle]
    if idle:
        table = _figures("idle", "for typical pods", "", "for any pod", "")
        for row in idle:
            amounts = [format_amount(row.resource, amount) for amount in (row.idle, row.stranded, row.unusable)]
            add(
                table,
                row.resource,
                amounts[0],
                amounts[1],
                format_share(row.share),
                amounts[2],
                format_share(row.unusable_share),
            )
        parts.append(table)
        covered = format_share(facts.common_pods / facts.pods)
        shapes = min(max((row.shapes for row in idle), default=0), facts.shapes)
        typical = "the most common size" if shapes == 1 else f"the {shapes:,} most common sizes"
        parts.append(Text(f"typical pods: {typical} ({covered} of the pods)", style="dim"))
    lacking = [shape for shape in facts.waiting if shape.allowed and shape.requests]
    parts += [Text(_shape_text(shape)) for shape in lacking[:SHOWN_SHAPES]]
    hidden = len(lacking) - SHOWN_SHAPES
    if hidden > 0:
        parts.append(Text(f"... and {hidden:,} more sizes of pending pods", style="dim"))
    return parts


def _shape_text(shape: ShapeFacts) -> str:
    more = f" and {shape.waiting - 1:,} more" if shape.waiting > 1 else ""
    asked = [
        f"{format_amount(name, amount)} {name} ({format_amount(name, shape.idle[name])} idle, "
        f"at most {format_amount(name, shape.idle_on_one[name])} on one node)"
        for name, amount in shape.requests.items()
    ]
    allowed = format_count(shape.allowed, "node")
    verb = "requests" if shape.waiting == 1 else "request"
    return f"{shape.example}{more}, allowed on {allowed}, {verb} {', '.join(asked)}"


def _input_warnings(facts: RunFacts) -> list[RenderableType]:
    given = facts.input
    parts: list[RenderableType] = []
    if facts.missing_plugins:
        parts.append(Text(f"plugins that this version lacks: {', '.join(facts.missing_plugins)}"))
    if given.unused:
        parts.append(Text(f"kinds that kube-scheduler does not read: {_listed(given.unused.items())}"))
    if given.warnings:
        parts.append(Text(_listed((_in_number(name, count), count) for name, count in given.warnings.items())))
        # List possible errors before notes.
        ordered = sorted(given.first_warnings, key=lambda each: each.kind in NOTES)
        lines = group_warnings((each.where, each.what, each.problem, each.hint) for each in ordered).lines()
        parts += [Text(line, style="dim") for line in lines[:SHOWN_WARNINGS]]
        hidden = len(lines) - SHOWN_WARNINGS
        if hidden > 0:
            parts.append(
                Text(f"... and {hidden:,} more: input.first_warnings in summary.json (--out DIR)", style="dim")
            )
    return parts


def _in_number(kind: str, count: int) -> str:
    """Return the name of a kind of warning, in the singular or plural."""
    if count == 1 or kind in (WarningKind.NO_OBJECT, WarningKind.SKIPPED_ROWS):
        return kind
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _failures(facts: RunFacts) -> list[RenderableType]:
    failures = list(facts.input.failures.items())
    parts: list[RenderableType] = [Text(f"{key}: {problem}") for key, problem in failures[:SHOWN_WARNINGS]]
    if len(failures) > SHOWN_WARNINGS:
        parts.append(Text(f"... and {len(failures) - SHOWN_WARNINGS:,} more", style="dim"))
    return parts


def _listed(counts: Iterable[tuple[str, int]]) -> str:
    items = list(counts)
    text = ", ".join(f"{count:,} {name}" for name, count in items[:SHOWN_KINDS])
    return f"{text} and {len(items) - SHOWN_KINDS:,} more kinds" if len(items) > SHOWN_KINDS else text
