"""Render a search for preemption victims on a terminal: the candidates with their victims, and why one or none was selected."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bayplan.analysis.explanation import CandidateReport, PreemptionRefusal, PreemptionReport
from bayplan.analysis.text_layout import add, grid, named, section, shown_nodes
from bayplan.analysis.units import format_duration, format_list
from bayplan.base.counted_nouns import format_count
from bayplan.framework.preemption.evaluator import NO_VICTIMS, NOT_HELPFUL
from bayplan.framework.preemption.shortlist import CRITERIA

SHOWN_CANDIDATES = 8
SHOWN_VICTIMS = 3
"""Default number of entries shown; the rest is counted. ``--json`` prints all."""


def render_preemption(found: PreemptionReport, *, all_nodes: bool) -> list[RenderableType]:
    """Render a search for victims as a list of parts."""
    parts: list[RenderableType] = []
    if found.candidates:
        parts.append(_candidates(found, all_nodes))
    parts += [Text(line) for line in _left_out(found, all_nodes)]
    refusals = [_refused(each) for each in found.refusals]
    if found.not_helpful:
        refusals.append((found.not_helpful, NOT_HELPFUL, []))
    if refusals:
        parts += [Text(), Text("not candidates:")] if found.candidates else []
        parts.append(_refusals(refusals, all_nodes))
    return section(f"Preemption, in attempt {found.attempt:,}: {_counts(found)}", parts)


def _counts(found: PreemptionReport) -> str:
    if not found.candidates:
        return "no node is a candidate"
    count = format_count(found.candidate_count, "candidate")
    if not found.chosen:
        return f"{count}, none of them was taken"
    return (
        f"{found.chosen}, the best of {count}" if found.candidate_count > 1 else f"{found.chosen}, the only candidate"
    )


def _candidates(found: PreemptionReport, all_nodes: bool) -> Table:
    table = grid("node", "")
    table.show_header = False
    chosen = next((each for each in found.candidates if each.chosen), None)
    shown = found.candidates if all_nodes else found.candidates[:SHOWN_CANDIDATES]
    for each in shown:
        why = _verdict(each, chosen)
        add(table, each.node, Text.assemble(_victims(each, all_nodes), *((("\n" + why, "dim"),) if why else ())))
    if len(shown) < found.candidate_count:
        add(table, "", Text(f"... and {found.candidate_count - len(shown):,} more", style="dim"))
    return table


def _victims(candidate: CandidateReport, all_nodes: bool) -> str:
    victims = candidate.victims if all_nodes else candidate.victims[:SHOWN_VICTIMS]
    victim_texts = []
    for victim in victims:
        started = "not started" if victim.started_ns is None else f"started {_start(victim.started_ns)}"
        victim_texts.append(f"{victim.pod} (priority {victim.priority:,}, {started})")
    listed = format_list(victim_texts, more=len(candidate.victims) - len(victims))
    return f"{'chosen: ' if candidate.chosen else ''}preempts {listed}"


def _start(started_ns: int) -> str:
    return f"at {format_duration(started_ns)}" if started_ns >= 0 else f"{format_duration(-started_ns)} before the run"


def _verdict(candidate: CandidateReport, chosen: CandidateReport | None) -> str:
    """Return why a candidate was not chosen: the criterion by which the chosen one is better, or that it is a tie."""
    if candidate.chosen or chosen is None:
        return ""
    if not candidate.lost_by:
        return "as good as the chosen one: a tie, broken at random"
    if candidate.lost_by == CRITERIA[-1]:
        return "loses by the latest start: its most important victim has run longer"
    own, best = _measure(candidate), _measure(chosen)
    return f"loses by {_CRITERIA[candidate.lost_by]}: {own[candidate.lost_by]}, not {best[candidate.lost_by]}"


def _measure(candidate: CandidateReport) -> dict[str, str]:
    count = len(candidate.victims)
    return {
        "pdb violations": f"{candidate.pdb_violations:,}",
        "highest priority": f"{candidate.victims[0].priority:,}",
        "sum of priorities": f"{candidate.priority_sum:,} of {format_count(count, 'victim')}",
        "number of victims": f"{count:,}",
    }


_CRITERIA = {
    "pdb violations": "victims that a PodDisruptionBudget protects",
    "highest priority": "the highest priority of a victim",
    "sum of priorities": "the sum of priorities",
    "number of victims": "the number of victims",
}


def _left_out(found: PreemptionReport, all_nodes: bool) -> list[str]:
    lines = []
    if found.struck_out:
        lines.append(f"extenders struck out {named(found.struck_out, all_nodes)}")
    if found.untried:
        untried = format_count(found.untried, "more node")
        lines.append(f"{untried} might have been candidates; enough were found (minCandidateNodes)")
    return lines


def _refused(refusal: PreemptionRefusal) -> tuple[int, str, list[str]]:
    text = ", ".join(refusal.reasons) or refusal.code
    if text != NO_VICTIMS and refusal.code != "Error":
        text = f"{refusal.plugin}: {text}, even without any pod of lower priority"
    return refusal.count, text, refusal.nodes


def _refusals(refusals: Sequence[tuple[int, str, list[str]]], all_nodes: bool) -> Table:
    table = shown_nodes()
    for count, text, nodes in refusals:
        which = named(nodes, all_nodes, count=count) if nodes else ""
        add(table, f"{count:,}", Text.assemble(text, *((("\n" + which, "dim"),) if which else ())))
    return table
