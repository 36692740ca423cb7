"""Render an explanation on a terminal: the verdict first, then attempts, rejections, scores, and remedies."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.analysis.explanation import (
    Advantage,
    Attempt,
    AttemptDetail,
    EventLine,
    Explanation,
    ExtenderReport,
    NodeDetail,
    NodeScore,
    PluginScore,
    Rejection,
    Remedy,
)
from bayplan.analysis.preemption_text import render_preemption
from bayplan.analysis.text_layout import add, bullets, grid, indented, named, section, shown_nodes
from bayplan.analysis.units import format_amount, format_duration
from bayplan.base.counted_nouns import format_count

SHOWN_ATTEMPTS = 8
SHOWN_REMEDIES = 7
SHOWN_EVENTS = 5
"""Maximum number of entries shown; the rest is counted. ``--json`` prints all."""

MAX_HEADING_LENGTH = 24
"""Maximum width of the heading of a score column; longer node names are wrapped."""


def render_explanation(found: Explanation, *, width: int, all_nodes: bool = False) -> list[RenderableType]:
    """Render an explanation as a list of parts.

    Args:
        found: the explanation.
        width: the width of the terminal in columns; limits the number of nodes in the table of scores.
        all_nodes: whether to name every node instead of only some.
    """
    parts: list[RenderableType] = [
        Text(found.verdict, style="bold"),
        *(indented(Text(line)) for line in _messages(found)),
        Padding(Text(_life(found), style="dim"), (0, 0, 0, 2)),
    ]
    if len(found.attempts) > 1:
        parts += section(_attempt_count(found.attempts), [_attempts(found.attempts)])
    if found.detail is not None:
        is_present = found.age_ns is not None
        parts += _detail(
            found.detail, width, all_nodes=all_nodes, quiet=found.node_detail is not None, is_present=is_present
        )
    if found.preemption is not None and found.node_detail is None:
        parts += render_preemption(found.preemption, all_nodes=all_nodes)
    if found.node_detail is not None:
        parts += _node(found.node_detail, found.detail)
    if found.events:
        parts += section("Kubernetes events", [_events(found.events)])
    parts += [Text(f"note: {note}", style="yellow") for note in found.notes]
    return parts + bullets("Assumptions", found.assumptions)


# --- the pod ----------------------------------------------------------------------------------------------------------


def _messages(found: Explanation) -> list[str]:
    """Return the scheduler's message as lines.

    If the message was reported earlier, add its scheduler and time, and the message of Bayplan's attempt if that
    differs.
    """
    if not found.reported_at:
        return [found.message] if found.message and found.message not in found.verdict else []
    lines = [f"{found.scheduler_name} reported at {found.reported_at}: {found.message}"]
    if found.message_now:
        lines.append(f"Bayplan's attempt now reports: {found.message_now}")
    return lines


def _life(found: Explanation) -> str:
    if found.age_ns is not None:
        age = [f"created {format_duration(found.age_ns)} ago"] if found.age_ns else []
        return ", ".join([*([found.workload] if found.workload else []), f"priority {found.priority:,}", *age])
    steps = [f"arrived at {format_duration(found.arrived_ns)}"]
    if found.bound_ns is not None and not found.imported:
        waited = found.bound_ns - found.arrived_ns
        steps.append(
            f"bound at {format_duration(found.bound_ns)}" + (f" ({format_duration(waited)} later)" if waited else "")
        )
    if found.ended_ns is not None:
        steps.append(f"ended at {format_duration(found.ended_ns)}")
    who = [found.workload] if found.workload else []
    who += [f"priority {found.priority:,}", *steps]
    return ", ".join(who)


def _attempt_count(attempts: Sequence[Attempt]) -> str:
    """Return the number of attempts as text, and the number of identical retries that have no records."""
    left_out = attempts[-1].attempt - len(attempts)
    text = format_count(len(attempts), "attempt")
    return f"{text}, and {left_out:,} identical retries" if left_out > 0 else text


def _attempts(attempts: Sequence[Attempt]) -> Table:
    table = grid("", "at", "nodes", "outcome")
    shown: list[Attempt | int] = list(attempts)
    if len(attempts) > SHOWN_ATTEMPTS:
        half = SHOWN_ATTEMPTS // 2
        shown = [*attempts[:half], len(attempts) - 2 * half, *attempts[-half:]]
    before = ""
    for each in shown:
        if isinstance(each, int):
            add(table, "", "", "", Text(f"... {each:,} more ...", style="dim"))
            continue
        nodes = f"{each.feasible_nodes:,} of {each.evaluated_nodes:,}" if each.evaluated_nodes else "none tried"
        text = _outcome(each)
        add(table, f"{each.attempt:,}", format_duration(each.time_ns), nodes, "the same" if text == before else text)
        before = text
    return table


def _outcome(attempt: Attempt) -> str:
    if attempt.outcome == "scheduled":
        ties = f", one of {attempt.ties:,} equals" if attempt.ties > 1 else ""
        return f"{attempt.node} (total {attempt.total:,}{ties})" if attempt.feasible_nodes > 1 else attempt.node
    text = attempt.message or attempt.outcome
    return f"{text} {_preemption(attempt)}".rstrip()


def _preemption(attempt: Attempt) -> str:
    if not attempt.nominated_node:
        return ""
    victims = f", preempting {', '.join(attempt.victims)}" if attempt.victims else ""
    return f"Nominated to {attempt.nominated_node}{victims}."


def _events(events: Sequence[EventLine]) -> Table:
    table = grid("after", "type", "reason", "note")
    table.show_header = False
    for event in events[-SHOWN_EVENTS:]:
        often = f" ({event.count:,} times)" if event.count > 1 else ""
        add(table, format_duration(event.last_ns), event.type, event.reason, f"{event.note}{often}")
    if len(events) > SHOWN_EVENTS:
        add(table, "", "", "", Text(f"... and {len(events) - SHOWN_EVENTS:,} earlier ones", style="dim"))
    return table


# --- one attempt ------------------------------------------------------------------------------------------------------


def _detail(
    detail: AttemptDetail, width: int, *, all_nodes: bool, quiet: bool, is_present: bool
) -> list[RenderableType]:
    """Render one attempt.

    `quiet`: return only the heading, because the details of one node follow. `is_present`: the attempt was made for
    this explanation, in a copy of the cluster.
    """
    attempt = detail.attempt
    at = format_duration(attempt.time_ns)
    heading = "Scheduled now, in a copy of the cluster" if is_present else f"Attempt {attempt.attempt:,}, at {at}"
    if quiet:
        return [Text(), Text(heading, style="bold")]
    parts = section(f"{heading}: {_counts(detail)}", [])
    if detail.rejections:
        parts.append(indented(_rejections(detail.rejections, all_nodes)))
    if attempt.nominated_node:
        parts.append(indented(Text(_preemption(attempt))))
    if detail.extenders:
        parts += section("Extenders", [Text(_extender(each)) for each in detail.extenders])
    if detail.remedies:
        parts += section("What would help", _remedies(detail.remedies))
    if detail.scored:
        shown = detail.best[: _columns_that_fit(detail.best, width)]
        parts += section("Best nodes by score", [_ranking(detail.best), Text(), _scores(shown)])
        parts += [Text(), *(indented(Text(line)) for line in _margin(detail))]
    return parts


def _counts(detail: AttemptDetail) -> str:
    if detail.tried_alone:
        return f"nominated to {detail.tried_alone}, which was tried first and taken; no other node was examined"
    if detail.attempt.outcome == "error":
        return "ended by an error"
    if detail.rejected_by_pre_filter:
        return "rejected before any node was tried"
    if not detail.nodes:
        return "there was no node"
    text = f"{detail.feasible:,} of {format_count(detail.nodes, 'node')} fit"
    if detail.ended_early:
        looked = f"{format_count(detail.examined, 'node')} of {detail.nodes:,}"
        text = f"{detail.feasible:,} that fit were enough, found among {looked} (percentageOfNodesToScore)"
    if detail.feasible == 1:
        return f"{text}; a single one is taken without scoring it"
    return text


def _rejections(rejections: Sequence[Rejection], all_nodes: bool) -> Table:
    table = shown_nodes()
    for each in rejections:
        why = ", ".join(each.reasons) or each.code
        final = "" if each.code == "Unschedulable" else f" ({_code(each.code)})"
        plugin = f"{each.plugin}: " if each.plugin else ""
        nodes = Text(named(each.nodes, all_nodes), style="dim")
        add(table, f"{len(each.nodes):,}", Text.assemble(f"{plugin}{why}{final}\n", nodes))
    return table


def _extender(report: ExtenderReport) -> str:
    """Describe the result of an extender. Its rejections and scores are listed with those of the plugins."""
    did = []
    if report.filter_error:
        end = "which is ignored" if report.ignored else "which ended the attempt"
        did.append(f"its filter failed, {end}: {report.filter_error}")
    elif report.asked:
        did.append(f"rejected {report.rejected:,} of {format_count(report.asked, 'node')}")
    if report.prioritize_error:
        did.append(f"gave no scores, which is ignored: {report.prioritize_error}")
    elif report.scored:
        did.append("gave scores")
    return f"{report.extender} {'; '.join(did)}"


def _code(code: str) -> str:
    return "preemption can't help" if code == "UnschedulableAndUnresolvable" else code


def _remedies(found: Sequence[Remedy]) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(each.text) for each in found[:SHOWN_REMEDIES]]
    if len(found) > SHOWN_REMEDIES:
        parts.append(Text(f"... or {len(found) - SHOWN_REMEDIES:,} other changes (bayplan unblock)", style="dim"))
    return parts


def _ranking(best: Sequence[NodeScore]) -> Table:
    table = grid("", "total", "node", "")
    top = best[0].total
    for each in best:
        notes = ["chosen"] if each.chosen else []
        notes += ["tied"] if each.tied and not each.chosen else []
        notes += [f"{top - each.total:,} behind"] if each.total < top else []
        add(table, f"{each.rank:,}", f"{each.total:,}", each.node, Text(", ".join(notes), style="dim"))
    return table


def _columns_that_fit(best: Sequence[NodeScore], width: int) -> int:
    """Return how many of the best nodes fit into the table of scores, at least 1."""
    left = width - 4 - max(len(_scorer(score)) for score in best[0].scores) if best[0].scores else width
    for number, each in enumerate(best):
        left -= 2 + max(min(len(each.node), MAX_HEADING_LENGTH), *(len(_score(score)) for score in each.scores), 0)
        if left < 0:
            return max(number, 1)
    return len(best)


def _scores(best: Sequence[NodeScore]) -> Table:
    """Return a table of plugins by nodes: raw, normalised and weighted scores, or one number if all three are equal."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
    table.add_column("raw>normalised>weighted", no_wrap=True)
    for each in best:
        table.add_column(each.node, justify="right", overflow="fold")
    for number, plugin in enumerate(best[0].scores):
        add(table, _scorer(plugin), *(_score(each.scores[number]) for each in best))
    add(table, "total", *(f"{each.total:,}" for each in best), style="bold")
    return table


def _score(score: PluginScore) -> str:
    numbers = [score.raw, score.normalized, score.weighted]
    if len(set(numbers)) == 1:
        return str(score.weighted)
    return ">".join(str(number) for number in numbers)


def _scorer(score: PluginScore) -> str:
    return f"{score.plugin} x{score.weight:,}"


def _margin(detail: AttemptDetail) -> list[str]:
    lines = []
    chosen = detail.attempt.node
    if len(detail.tie_set) > 1:
        lines.append(f"tied: {named(detail.tie_set, False)}; {chosen} was drawn at random")
    if detail.runner_up:
        ahead = f"{format_count(detail.margin, 'point')} ahead of {detail.runner_up}"
        lines.append(f"{chosen} is {ahead}: {_points(detail.advantages)}")
    elif chosen:
        lines.append(f"{chosen} has no runner-up: every node that fits is in the tie set")
    return lines


def _points(advantages: Sequence[Advantage]) -> str:
    return ", ".join(f"{each.plugin} {each.points:+,}" for each in advantages)


# --- one node ---------------------------------------------------------------------------------------------------------


def _node(node: NodeDetail, detail: AttemptDetail | None) -> list[RenderableType]:
    parts: list[RenderableType] = [indented(Text(node.fate))]
    if node.requested and node.free:
        table = grid("resource", "requests", "free")
        for resource, amount in node.requested.items():
            short = node.free[resource] < amount
            free = Text(format_amount(resource, node.free[resource]), style="red" if short else "")
            add(table, resource, format_amount(resource, amount), free)
        parts += [Text(), indented(table)]
    if node.verdicts:
        table = grid("filter", "verdict")
        for verdict in node.verdicts:
            passes = verdict.code == "Success"
            text = "passes" if passes else f"{', '.join(verdict.reasons)} ({verdict.code})"
            text += f"; to make it pass now: {verdict.change}" if verdict.change else ""
            add(table, verdict.plugin, Text(text, style="" if passes else "red"))
        parts += [Text(), indented(table)]
    if node.score is not None:
        parts += [Text(), indented(_scores([node.score]))]
        if node.advantages and detail is not None:
            other = detail.runner_up if node.score.chosen else node.node
            winner = detail.attempt.node
            parts += [Text(), indented(Text(f"{winner} against {other}: {_points(node.advantages)}"))]
    return parts
