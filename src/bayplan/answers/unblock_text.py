"""Render the suggestions to get a waiting pod placed: the verdict first, then suggestions, the least risky first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.analysis.text_layout import bullets
from bayplan.analysis.units import format_first
from bayplan.answers.unblock import Suggestion, Unblocking
from bayplan.base.counted_nouns import format_count

SHOWN = 10
"""Maximum number of suggestions shown without --all."""

_INDENT = (0, 0, 0, 4)
SHOWN_PODS = 4


def render_unblocking(found: Unblocking, *, everything: bool = False) -> list[RenderableType]:
    """Render an answer as a list of parts to print."""
    parts: list[RenderableType] = [Text(found.verdict, style="bold")]
    shown = found.suggestions if everything else found.suggestions[:SHOWN]
    for each in shown:
        parts += ["", *_suggestion(each, found)]
    if len(found.suggestions) > len(shown):
        parts += ["", Text(f"... and {len(found.suggestions) - len(shown):,} more (--all)", style="dim")]
    if not found.fits:
        parts += [
            "",
            Text(f"{format_count(found.trials, 'change')} tried in a copy of the cluster.", style="dim"),
        ]
    return parts + bullets("Limits", found.limits) + bullets("Assumptions", found.assumptions)


def _suggestion(each: Suggestion, found: Unblocking) -> list[RenderableType]:
    head = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    head.add_column(no_wrap=True)
    head.add_column(overflow="fold", style="bold")
    head.add_row(f"{each.rank:>2}", Text(each.text))
    many = (
        f"; {each.placed:,} of {each.waiting:,} pods {'gets' if each.placed == 1 else 'get'} a node"
        if each.waiting > 1
        else ""
    )
    goes = f"{found.waiting[0]} goes to {each.node}" if each.node else "another pod of the workload gets a node"
    lines = [f"{each.kind}: {goes}{many}. {each.risk[:1].upper()}{each.risk[1:]}."]
    if each.moved:
        lines.append(f"moves {_listed([f'{place.pod} to {place.node}' for place in each.moved])}")
    if each.evicted:
        lines.append(f"left without a node: {_listed(each.evicted)}")
    lines += [f"$ {command}" for command in each.commands[:SHOWN_PODS]]
    return [head, *(Padding(Text(line), _INDENT) for line in lines)]


def _listed(items: Sequence[str]) -> str:
    return format_first(items, SHOWN_PODS)
