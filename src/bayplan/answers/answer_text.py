"""Render answers as text: the verdict in the first line, then tables, then the assumptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bayplan.analysis.text_layout import bullet_lines
from bayplan.analysis.units import format_duration, format_share
from bayplan.answers.capacity import QUOTA, CapacityAnswer
from bayplan.answers.headroom import HeadroomAnswer
from bayplan.answers.node_addition import AdditionAnswer
from bayplan.answers.node_removal import RemovalAnswer
from bayplan.answers.pod_differences import WORST_FIRST
from bayplan.answers.start_times import PendingReason, Start, StartAnswer
from bayplan.answers.what_if import Answer
from bayplan.base.counted_nouns import format_count, plural
from bayplan.base.go_text.times import format_time


class KindTexts(NamedTuple):
    """The words for a kind of difference: in tables, and after a number of pods (singular and plural)."""

    word: str
    singular: str
    plural: str


_KINDS = {
    "moved": KindTexts("moved", "moves", "move"),
    "waits": KindTexts("pending", "becomes pending", "become pending"),
    "placed": KindTexts("placed", "gets a node", "get a node"),
    "gone": KindTexts("gone", "is gone", "are gone"),
    "new": KindTexts("new", "is new", "are new"),
}

SHOWN = 15
"""Default maximum number of table rows; ``--json`` has all rows."""


def columns(heads: Sequence[str], rows: Iterable[Sequence[object]], *, everything: bool = False) -> list[str]:
    """Return a table as indented lines with aligned columns; columns of numbers are right-aligned.

    Shows at most `SHOWN` rows and the number of the rest, unless `everything` is set.
    """
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    if not cells:
        return []
    shown = cells if everything else cells[:SHOWN]
    numbers = [all(cell.replace(",", "").isdecimal() for cell in column) for column in zip(*shown, strict=True)]
    table = [list(heads), *shown]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for line in table:
        parts = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numbers, strict=True)
        ]
        lines.append(f"  {'  '.join(parts)}".rstrip())
    if len(shown) < len(cells):
        lines.append(f"  and {len(cells) - len(shown):,} more (--all, --json)")
    return lines


def listed(counts: Mapping[str, int], *, most: int = 3) -> str:
    """Return the most frequent items with their numbers: ``Insufficient cpu (12), node(s) were unschedulable (1)``."""
    found = [f"{name} ({count:,})" for name, count in list(counts.items())[:most]]
    more = len(counts) - most
    return ", ".join(found) + (f" and {more:,} more" if more > 0 else "")


def assumed(assumptions: Sequence[str]) -> list[str]:
    """Return an answer's assumptions as the lines of a section."""
    return bullet_lines("Assumptions", assumptions)


# --- capacity ---------------------------------------------------------------------------------------------------------


def capacity_text(answer: CapacityAnswer, *, everything: bool = False) -> list[str]:
    """Return the lines about how many further copies fit."""
    lines = [_capacity_verdict(answer)]
    if answer.by_seed:
        counts = sorted(answer.by_seed.values())
        spread = f"{counts[0]:,} to {counts[-1]:,}" if counts[0] != counts[-1] else f"{counts[0]:,}"
        lines.append(f"{'All' if counts[0] == counts[-1] else 'Over'} {len(counts)} seeds: {spread} copies.")
    if len(answer.workloads) > 1:
        shares = [(each.workload, each.copies, each.share) for each in answer.workloads]
        lines += ["", *columns(("WORKLOAD", "COPIES", "PER MIX"), shares, everything=True)]
    if answer.message:
        end = "is refused" if QUOTA in answer.runs_out else "finds no node"
        lines += ["", f"The next copy of {answer.stopped_by} {end}:", f"  {answer.message}"]
    groups = [
        (
            each.zone or "-",
            each.pool or "-",
            each.nodes,
            each.nodes_with_room,
            each.copies,
            each.nodes_left,
            listed(each.runs_out, most=2) or "-",
        )
        for each in sorted(answer.groups, key=lambda each: -each.copies)
    ]
    heads = ("ZONE", "POOL", "NODES", "HAD ROOM", "COPIES", "HAVE ROOM", "LIMITED BY")
    if groups:
        lines += ["", *columns(heads, groups, everything=everything)]
    if answer.victims:
        victims = [(v.pod, v.priority, v.node, v.preemptor, v.new_node or "(pending)") for v in answer.victims]
        titles = ("EVICTED", "PRIORITY", "FROM", "FOR", "GOES TO")
        lines += ["", *columns(titles, victims, everything=everything)]
    return lines + assumed(answer.assumptions)


def headroom_text(answer: HeadroomAnswer, start_ns: int, *, everything: bool = False) -> list[str]:
    """Return the lines about headroom over time; `start_ns` is the start of the simulation."""
    least = next(row for row in answer.times if row.copies == answer.least)
    at = format_duration(least.taken_at_ns - start_ns)
    reason = f", because of {least.runs_out}" if least.runs_out else ""
    rows = [
        (
            format_duration(row.taken_at_ns - start_ns),
            f"{'at least ' if row.reached_limit else ''}{row.copies:,}",
            row.placed,
            row.waiting,
            row.runs_out or "-",
        )
        for row in answer.times
    ]
    if answer.least == answer.most:
        at_least = "At least " if least.reached_limit else ""
        copies, fit = _copies(answer.least, "more "), "fits" if answer.least == 1 else "fit"
        verdict = f"{at_least}{copies} of {answer.workloads} {fit} at each time"
        verdict += f"; the limit is {least.runs_out}" if least.runs_out else ""
    else:
        up_to = "at least " if any(row.reached_limit for row in answer.times if row.copies == answer.most) else ""
        verdict = f"Between {answer.least:,} and {up_to}{answer.most:,} more copies of {answer.workloads} fit over time"
        verdict += f"; the fewest at {at}{reason}"
    heads = ("TIME", "COPIES", "PODS", "PENDING", "RUNS OUT")
    table = columns(heads, rows, everything=everything)
    return [f"{verdict}.", "", *table, *assumed(answer.assumptions)]


def _copies(count: int, more: str = "") -> str:
    return f"{count:,} {more}{plural('copy', count)}"


def _capacity_verdict(answer: CapacityAnswer) -> str:
    if len(answer.workloads) == 1:
        rest = 0
        what = f"{_copies(answer.copies, 'more ')} of {answer.workloads[0].workload}"
    else:
        mix = " + ".join(f"{each.share} {each.workload}" for each in answer.workloads)
        rest = answer.copies - answer.mixes * sum(each.share for each in answer.workloads)
        what = f"{format_count(answer.mixes, 'more mix')} of {mix}"
        what += f" ({_copies(answer.copies - rest)})"
    fit = "fits" if (answer.copies if len(answer.workloads) == 1 else answer.mixes) == 1 else "fit"
    fit += f", plus {_copies(rest)} of an incomplete mix" if rest else ""
    if answer.reached_limit:
        return f"At least {what} {fit}; the search ended there (--limit)."
    waits = sum(not each.new_node for each in answer.victims)
    if answer.victims:
        count = len(answer.victims)
        stay = "all" if waits == count else f"{waits:,}" if waits else "none"
        then = f"of which {stay} {'stays' if waits == 1 else 'stay'} pending"
        if count == 1:
            then = "which stays pending" if waits else "which finds another node"
        what = f"{what} {fit}, evicting {format_count(count, 'pod')}, {then}"
    else:
        what = f"{what} {fit}"
    if QUOTA in answer.runs_out:
        if not answer.exceeded_quota:
            return f"{what}; the next copy of {answer.stopped_by} is {answer.message}."
        return f"{what}; {'then ' if answer.copies else ''}the resource quota {answer.exceeded_quota} is used up."
    if not answer.groups:
        return f"{what}; the cluster has no nodes."
    first = next(iter(answer.runs_out), "")
    of = "" if len(answer.workloads) == 1 else f" of {answer.stopped_by}"
    if not first or not any(each.nodes_with_room or each.copies for each in answer.groups):
        if not first and answer.message:
            return f"{what}; the next copy{of} is not scheduled: {answer.message}."
        why = f": {listed(answer.runs_out, most=2)}" if first else ""
        return f"{what}; no node has room for another copy{of}{why}."
    where = format_count(answer.runs_out[first], "node")
    if not answer.short_of:
        return f"{what}; the next copy{of} is rejected: {first} (on {where})."
    return f"{what}; {answer.short_of} runs out first (on {where})."


# --- nodes ------------------------------------------------------------------------------------------------------------


def removal_text(answer: RemovalAnswer, *, everything: bool = False) -> list[str]:
    """Return the lines about nodes that can be removed."""
    count, bound = len(answer.removed), answer.bound
    priced = answer.has_prices
    saved = f", saving {answer.price:,.2f}" if priced and count else ""
    if answer.most == count and not priced:
        at_most = "The limit of --most is reached"
    elif answer.price >= bound.price * (1 - 1e-9):
        of_size = "" if answer.most is None else f" of at most {format_count(answer.most, 'node')}"
        at_most = f"No set{of_size or ' of nodes'} saves more" if priced else "No larger set of nodes can be removed"
    else:
        limited = f"limited by {bound.resource}; " if bound.resource else ""
        saving = f", saving {bound.price:,.2f}" if priced else ""
        at_most = f"Upper bound: {format_count(bound.nodes, 'node')}{saving} ({limited}{bound.method})"
    move = "moves" if len(answer.moves) == 1 else "move"
    moves = f": {format_count(len(answer.moves), 'pod')} {move}, and no placed pod becomes pending"
    of = format_count(answer.nodes, "node")
    if count:
        lines = [f"{count:,} of {of} can be removed{saved}{moves}. {at_most}."]
    elif answer.nodes == 1:
        lines = ["The only node can't be removed."]
    else:
        lines = [f"None of {of} can be removed." if answer.nodes else "The cluster has no nodes."]
    rows = [
        (each.order, each.node, each.zone or "-", each.pool or "-", each.pods, each.ends) for each in answer.removed
    ]
    lines += ["", *columns(("ORDER", "NODE", "ZONE", "POOL", "PODS MOVED", "PODS ENDED"), rows, everything=everything)]
    moves_rows = [(each.pod, each.from_node, each.to_node) for each in answer.moves]
    lines += ["", *columns(("POD", "FROM", "TO"), moves_rows, everything=everything)]
    for title, is_rule in (("Kept by a rule of the drain", True), ("Kept because a pod finds no other node", False)):
        kept = [(each.node, each.pod or "-", each.reason) for each in answer.kept if each.is_rule is is_rule]
        if kept:
            lines += ["", f"{title}: {format_count(len(kept), 'node')}"]
            reasons = Counter(reason for _, _, reason in kept)
            if is_rule and len(reasons) < len(kept) and not everything:
                lines += [f"  {count:,}  {reason}" for reason, count in reasons.most_common(SHOWN)]
            else:
                lines += columns(("NODE", "POD", "REASON"), kept, everything=everything)
    return _paragraphs([*lines, *assumed(answer.assumptions)])


def addition_text(answer: AdditionAnswer, *, everything: bool = False) -> list[str]:
    """Return the lines about nodes to add."""
    lines = [_addition_verdict(answer)]
    rows = [(each.node, each.shape, each.zone or "-", f"{each.price:g}", each.pods) for each in answer.nodes]
    lines += ["", *columns(("NODE", "SHAPE", "ZONE", "PRICE", "PODS"), rows, everything=everything)]
    added = {each.node for each in answer.nodes}
    placed = [(each.pod, each.node) for each in answer.pods if each.node in added]
    lines += ["", *columns(("POD", "NODE"), placed, everything=everything)]
    waiting = [(each.pod, each.reason) for each in answer.pods if not each.node]
    if waiting:
        lines += ["", "No shape helps:", *columns(("POD", "REASON"), waiting, everything=everything)]
    return _paragraphs([*lines, *assumed(answer.assumptions)])


def _addition_verdict(answer: AdditionAnswer) -> str:
    if not answer.waiting:
        return "No pod is pending, so no node is needed."
    if not len(answer.nodes):
        if answer.still_waiting:
            count = answer.still_waiting
            stay = f"{format_count(count, 'pod')} {'stays' if count == 1 else 'stay'} pending"
            return f"{stay}: no node of these shapes helps."
        fit = "1 pod fits" if answer.waiting == 1 else f"All {format_count(answer.waiting, 'pod')} fit"
        return f"{fit} the current cluster; no node is needed."
    shapes = ", ".join(f"{count:,} x {name}" for name, count in answer.by_shape.items())
    text = f"Add {format_count(len(answer.nodes), 'node')} ({shapes}) at a price of {answer.price:,.6g}"
    if answer.bound >= answer.price * (1 - 1e-6):
        text += "; no set of such nodes is cheaper"
    elif answer.bound > 0:
        text += f"; no set of such nodes is cheaper than {answer.bound:,.6g} ({answer.bound_method})"
    if answer.placed_without:
        text += f"; {format_count(answer.placed_without, 'pod')} fit without new nodes"
    if answer.still_waiting:
        text += (
            f"; {format_count(answer.still_waiting, 'pod')} {'stays' if answer.still_waiting == 1 else 'stay'} pending"
        )
    return f"{text}."


# --- what if, compare -------------------------------------------------------------------------------------------------


def difference_text(answer: Answer, *, names: tuple[str, str] | None = None, everything: bool = False) -> list[str]:
    """Return the lines about differences. `names`: the two clusters; None for one cluster before and after changes."""
    before, after = names or ("BEFORE", "AFTER")
    parts = [
        f"{count:,} {_KINDS[kind].singular if count == 1 else _KINDS[kind].plural}"
        for kind, count in answer.counts.items()
        if count
    ]
    unplaced = sum(each.kind == "new" and not each.after for each in answer.differences)
    if unplaced and parts:
        # New pods are the last kind.
        parts[-1] += " and pending" if unplaced == answer.counts["new"] else f" ({unplaced:,} of them pending)"
    changes = ", ".join(answer.changes) if names is None else f"{before} and {after}"
    if not parts:
        same = "the pod is where it was" if answer.pods == 1 else f"all {answer.pods:,} pods are where they were"
        same = same if answer.pods else "the cluster has no pods"
        lines = [
            f"{changes}: {same}, with other differences." if answer.changed else f"{changes}: no difference; {same}."
        ]
    else:
        lines = [f"{changes}: of {format_count(answer.pods, 'pod')}, {', '.join(parts)}."]
    if evictions := _evictions(answer):
        lines[0] = f"{lines[0].removesuffix('.')}; {evictions}."
    rows = [(each.name, _figure(each.name, each.before), _figure(each.name, each.after)) for each in answer.measures]
    lines += ["", *columns(("", before, after), rows, everything=True)]
    if answer.changed:
        lines += ["", *(f"{each}." for each in answer.changed)]
    plugins = Counter(each.plugin for each in answer.differences if each.plugin)
    if plugins:
        lines += ["", f"Plugins that decided: {listed(dict(plugins.most_common()), most=6)}"]
    if len(answer.differences) > SHOWN:
        lines += ["", *_by_workload(answer)]
    pods = [
        (
            each.pod,
            _KINDS[each.kind].word,
            each.before or "-",
            each.after or "-",
            _why(each.plugin, each.reason),
        )
        for each in sorted(answer.differences, key=lambda each: WORST_FIRST.index(each.kind))
    ]
    heads = ("POD", "", before, after, "WHY")
    ends = [*bullet_lines("Warnings", answer.warnings), *assumed(answer.assumptions)]
    return _paragraphs([*lines, "", *columns(heads, pods, everything=everything), *ends])


def _evictions(answer: Answer) -> str:
    """Return the number of evicted pods in words, and that before the changes if it is not 0; "" if both are 0."""
    after = len(answer.evictions)
    before = next((int(each.before) for each in answer.measures if each.name == "preempted"), 0)
    pods = format_count(after, "pod") if after else "no pod"
    if before == after:
        return f"{pods} evicted in both cases" if after else ""
    return f"{pods} evicted ({before:,} before)" if before else f"{pods} evicted"


def _by_workload(answer: Answer) -> list[str]:
    """Return a table of the workloads, those with the most pending pods first."""
    kinds = [kind for kind, count in answer.counts.items() if count]
    kinds.sort(key=lambda kind: kind != "waits")
    counts: dict[str, Counter[str]] = {}
    for each in answer.differences:
        counts.setdefault(each.workload or f"pod/{each.pod}", Counter())[each.kind] += 1
    worst = sorted(counts.items(), key=lambda each: (-each[1]["waits"], -each[1].total(), each[0]))
    rows = [(name, *(found[kind] for kind in kinds)) for name, found in worst]
    return columns(("WORKLOAD", *(_KINDS[kind].word.upper() for kind in kinds)), rows)


def _why(plugin: str, reason: str) -> str:
    # Show only the first sentence of a scheduler's message: the rest is about preemption.
    reason = reason.partition(". ")[0].removesuffix(".")
    return f"{plugin}: {reason}" if plugin and reason else reason or plugin


def _figure(name: str, value: float) -> str:
    if name.endswith((" requested", " fragmented")):
        return format_share(value)
    return f"{value:,.0f}"


# --- when -------------------------------------------------------------------------------------------------------------


def start_text(answer: StartAnswer, *, everything: bool = False) -> list[str]:
    """Return the lines about when pods start."""
    starts = f"{answer.asked}: its last pod starts" if answer.pods > 1 else f"{answer.asked} starts"
    horizon = format_duration(answer.horizon_ns)
    if answer.median_ns is not None and answer.earliest_ns is not None and answer.latest_ns is not None:
        text = f"{starts} in {format_duration(answer.median_ns)}"
        if answer.latest_ns != answer.earliest_ns:
            text += f" (from {format_duration(answer.earliest_ns)} to {format_duration(answer.latest_ns)})"
    elif answer.earliest_ns is not None:
        text = f"{starts} in {format_duration(answer.earliest_ns)} at the earliest, or not within {horizon}"
    else:
        left = [each for each in answer.starts if each.wait_ns is None]
        why = "no pod with a known run time makes room for it"
        if not left:
            why = "no pods are created for it"
        elif all(each.reason is PendingReason.GATED for each in left):
            why = "nothing removes its scheduling gates"
        elif left[0].reason is PendingReason.UNATTENDED and len({each.message for each in left}) == 1:
            why = left[0].message
        text = f"{answer.asked} does not start within {horizon}; {why}"
    heads = ("POD", "SEEDS", "STARTS", "IN", "NODE", "")
    table = columns(heads, _start_rows(answer.starts, everything=everything), everything=everything)
    return [f"{text}.", *(["", *table] if answer.starts else []), *assumed(answer.assumptions)]


def _start_rows(starts: Iterable[Start], *, everything: bool) -> list[tuple[str, str, str, str, str, str]]:
    """Return the rows of the table: one per outcome of a pod, with the seeds that lead to it.

    Pods that don't start for the same reason with the same seeds share a row, unless `everything` is set.
    """
    outcomes: dict[tuple[str, int | None, str, str], list[Start]] = {}
    for each in starts:
        reason = each.message.partition(". ")[0]
        outcomes.setdefault((each.pod, each.starts_at_ns, each.node, reason), []).append(each)
    rows: dict[tuple[str, str, str, str], list[Start]] = {}
    for (pod, starts_at_ns, node, reason), alike in outcomes.items():
        seeds = _ranges(sorted({each.seed for each in alike}))
        is_shared = starts_at_ns is None and not everything
        rows.setdefault((seeds, "" if is_shared else f"{pod} {starts_at_ns}", node, reason), []).append(alike[0])
    return [
        (
            first.pod if not others else f"{first.pod} and {len(others):,} more",
            seeds,
            "-" if first.starts_at_ns is None else format_time(first.starts_at_ns),
            "-" if first.wait_ns is None else format_duration(first.wait_ns),
            first.node or "-",
            reason,
        )
        for (seeds, _, _, reason), (first, *others) in rows.items()
    ]


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, with runs of consecutive numbers in short: ``0-2, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def _paragraphs(lines: Sequence[str]) -> list[str]:
    """Return the lines with single empty lines between paragraphs, and none at the end."""
    kept = [line for place, line in enumerate(lines) if line or (place and lines[place - 1])]
    while kept and not kept[-1]:
        kept.pop()
    return kept
