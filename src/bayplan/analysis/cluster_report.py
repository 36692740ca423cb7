"""The report on a cluster as a running scheduler sees it; ``bayplan up`` prints it after loading input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.analysis.cluster_sentences import Gap, cluster_sentence
from bayplan.analysis.reasons import pods_by_reason
from bayplan.analysis.units import format_amount, format_count, format_list, format_share
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.node import is_ready
from bayplan.state.arrays import Bools, Ints
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT

EXAMPLES = 3
SHOWN_MESSAGES = 8
ALWAYS_SHOWN = ("cpu", "memory")
NOT_TRIED = "not tried yet"


@dataclass(frozen=True)
class ResourceUse:
    """The requested and allocatable amounts of a resource, in the units of the state.

    Attributes:
        resource: its name.
        requested, allocatable: the amounts on all nodes.
        free, largest_gap: free on nodes that are ready and not cordoned: on all of them, and the most on one.
    """

    resource: str
    requested: int
    allocatable: int
    free: int
    largest_gap: int


@dataclass(frozen=True)
class ClusterFacts:
    """The facts of the report.

    Attributes:
        nodes, zones: the number of nodes and zones.
        placed, waiting, gated: the number of unfinished pods with each status.
        decisions: the number of cycles so far, by outcome.
        messages: the last messages about waiting pods, with the pods' keys; the most frequent first.
        resources: the resources that any pod requests, and the usual ones.
    """

    nodes: int
    zones: int
    placed: int
    waiting: int
    gated: int
    decisions: Mapping[str, int]
    messages: Sequence[tuple[str, Sequence[str]]]
    resources: Sequence[ResourceUse]


def cluster_facts(scheduler: Scheduler, decisions: Mapping[str, int]) -> ClusterFacts:
    """Return the facts of a scheduler's cluster. Call on the scheduler's thread."""
    state, queue, records = scheduler.state, scheduler.queue, scheduler.records
    counts = queue.pending_counts()
    waiting = [queued for queued in (*queue.active(), *queue.backing_off(), *queue.unschedulable()) if not queued.gated]
    by_message: dict[str, list[str]] = {}
    latest = {record.pod: record.message for record in records if record.message}
    for queued in waiting:
        by_message.setdefault(latest.get(queued.key, NOT_TRIED), []).append(queued.key)
    messages = sorted(by_message.items(), key=lambda each: (-len(each[1]), each[0]))
    zones = {node.metadata.labels.get("topology.kubernetes.io/zone") for node in state.nodes.nodes if node is not None}
    return ClusterFacts(
        nodes=len(state.nodes),
        zones=len(zones - {None}),
        placed=len(state.pods),
        waiting=len(waiting),
        gated=counts["gated"],
        decisions=decisions,
        messages=messages,
        resources=_resources(scheduler),
    )


def _resources(scheduler: Scheduler) -> list[ResourceUse]:
    nodes, usage = scheduler.state.nodes, scheduler.state.usage
    shut = nodes.unschedulable.copy()
    shut[[row for row, node in enumerate(nodes.nodes) if node is not None and not is_ready(node)]] = True
    found = [_use("pods", usage[POD_COUNT], nodes.allowed_pods, shut)]
    for number, name in enumerate(nodes.resources.names):
        requested, allocatable = usage[FIRST_RESOURCE + number], nodes.allocatable[number]
        if name in ALWAYS_SHOWN or requested.any():
            found.append(_use(name, requested, allocatable, shut))
    return found


def _use(resource: str, requested: Ints, allocatable: Ints, shut: Bools) -> ResourceUse:
    free = np.where(shut, 0, np.maximum(allocatable - requested, 0))
    return ResourceUse(
        resource, int(requested.sum()), int(allocatable.sum()), int(free.sum()), int(free.max(initial=0))
    )


def render_cluster_report(facts: ClusterFacts) -> list[RenderableType]:
    """Return the report, part by part, for `bayplan.analysis.report.print_parts`."""
    reasons = pods_by_reason((message, len(pods)) for message, pods in facts.messages if message != NOT_TRIED)
    gaps = [Gap(use.resource, use.largest_gap, use.free) for use in facts.resources]
    pods = facts.placed + facts.waiting + facts.gated
    sentence = cluster_sentence(
        pods=pods, waiting=facts.waiting, gated=facts.gated, nodes=facts.nodes, reasons=reasons, gaps=gaps
    )
    parts: list[RenderableType] = [Text(), Text(f"{sentence}.", style="bold"), _overview(facts, pods)]
    if facts.messages:
        heading = f"Waiting for a node: {format_count(facts.waiting, 'pod')}"
        parts += [Text(), Text(heading, style="bold"), Padding(_waiting(facts.messages), (0, 0, 0, 2))]
    if facts.nodes:
        heading = "Utilisation: requested and allocatable"
        parts += [Text(), Text(heading, style="bold"), Padding(_utilisation(facts.resources), (0, 0, 0, 2))]
    return [*parts, Text()]


def _overview(facts: ClusterFacts, pods: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    zones = f" in {format_count(facts.zones, 'zone')}" if facts.zones else ""
    counted = [f"{count:,} {name}" for name, count in facts.decisions.items() if count]
    rows = [("nodes", f"{facts.nodes:,}{zones}"), ("pods", f"{pods:,}"), ("  placed", f"{facts.placed:,}")]
    rows.append(("  waiting", f"{facts.waiting:,}"))
    if facts.gated:
        rows.append(("  gated", f"{facts.gated:,}"))
    total = sum(facts.decisions.values())
    rows.append(("decisions", f"{total:,}: {', '.join(counted)}" if counted else f"{total:,}"))
    for name, text in rows:
        table.add_row(Text(name), Text(text))
    return table


def _waiting(messages: Sequence[tuple[str, Sequence[str]]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for message, pods in messages[:SHOWN_MESSAGES]:
        examples = format_list(pods[:EXAMPLES], more=max(len(pods) - EXAMPLES, 0))
        table.add_row(Text(f"{len(pods):,}"), Text.assemble(f"{message}\n", (examples, "dim")))
    if len(messages) > SHOWN_MESSAGES:
        table.add_row(Text(), Text(f"... and {len(messages) - SHOWN_MESSAGES:,} more messages", style="dim"))
    return table


def _utilisation(resources: Sequence[ResourceUse]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
    table.add_column()
    for name in ("requested", "of", "", "largest gap"):
        table.add_column(name, justify="right", no_wrap=True)
    for use in resources:
        share = format_share(use.requested / use.allocatable) if use.allocatable else "-"
        amounts = [format_amount(use.resource, amount) for amount in (use.requested, use.allocatable, use.largest_gap)]
        table.add_row(Text(use.resource), amounts[0], amounts[1], share, amounts[2])
    return table
