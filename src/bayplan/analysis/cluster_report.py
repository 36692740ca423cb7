"""The report on a cluster as a running scheduler sees it; ``bayplan up`` prints it after loading input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bayplan.analysis.cluster_sentences import CommonCause, cluster_sentence
from bayplan.analysis.filter_matrix import filter_matrix
from bayplan.analysis.root_cause import root_cause
from bayplan.analysis.scheduler_surroundings import SchedulerSurroundings
from bayplan.analysis.units import format_amount, format_list, format_share
from bayplan.base.counted_nouns import format_count
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.node import is_ready
from bayplan.objects.pod import Pod
from bayplan.objects.requests import accounted_requests
from bayplan.state.arrays import Bools, Ints
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT

EXAMPLES = 3
SHOWN_REASONS = 8
MAX_EVALUATED = 50
"""Maximum number of groups of identical waiting pods whose root cause is computed. More would delay the scheduler."""

ALWAYS_SHOWN = ("cpu", "memory")
NOT_TRIED = "not tried yet"


@dataclass(frozen=True)
class ResourceUse:
    """The requested and allocatable amounts of a resource, in units of the state (milli-CPU, bytes, counts).

    Attributes:
        resource: the resource's name.
        requested, allocatable: the amounts on all nodes.
        free, largest_gap: the free amount on all ready, uncordoned nodes, and the largest free amount on one of them.
    """

    resource: str
    requested: int
    allocatable: int
    free: int
    largest_gap: int


@dataclass(frozen=True)
class ClusterFacts:
    """The contents of the report.

    Attributes:
        nodes, zones: the number of nodes and zones.
        placed, waiting, gated: the number of unfinished pods with each status.
        decisions: the number of cycles so far, by outcome.
        reasons: pairs of a reason and the keys of the pods that wait for it, the most frequent reason first.
        resources: pods, the resources that any pod requests, and those in `ALWAYS_SHOWN`.
    """

    nodes: int
    zones: int
    placed: int
    waiting: int
    gated: int
    decisions: Mapping[str, int]
    reasons: Sequence[tuple[str, Sequence[str]]]
    resources: Sequence[ResourceUse]


def cluster_facts(scheduler: Scheduler, decisions: Mapping[str, int]) -> ClusterFacts:
    """Return the facts of a scheduler's cluster. Call on the scheduler's thread."""
    state, queue, records = scheduler.state, scheduler.queue, scheduler.records
    counts = queue.pending_counts()
    waiting = [
        queued for queued in (*queue.active(), *queue.backing_off(), *queue.unschedulable()) if not queued.gating_plugin
    ]
    latest = {record.pod: number for number, record in enumerate(records)}
    groups: dict[bytes, list[Pod]] = {}
    encode = msgspec.msgpack.Encoder().encode
    for queued in waiting:
        pod = queued.pod
        groups.setdefault(encode((pod.metadata.namespace, pod.metadata.labels, pod.spec)), []).append(pod)
    by_reason: dict[str, list[str]] = {}
    for place, pods in enumerate(sorted(groups.values(), key=len, reverse=True)):
        number = latest.get(pods[0].key)
        reason = NOT_TRIED if number is None else _reason(scheduler, pods[0], number, evaluate=place < MAX_EVALUATED)
        by_reason.setdefault(reason, []).extend(pod.key for pod in pods)
    # Reasons with equally many pods stay in the order of the queue, as on the page and in `bayplan waiting`.
    reasons = sorted(by_reason.items(), key=lambda each: -len(each[1]))
    zones = {node.metadata.labels.get("topology.kubernetes.io/zone") for node in state.nodes.nodes if node is not None}
    return ClusterFacts(
        nodes=len(state.nodes),
        zones=len(zones - {None}),
        placed=len(state.pods),
        waiting=len(waiting),
        gated=counts["gated"],
        decisions=decisions,
        reasons=reasons,
        resources=_resources(scheduler),
    )


def _reason(scheduler: Scheduler, pod: Pod, number: int, *, evaluate: bool) -> str:
    """Return the root cause of a pod's last attempt; the attempt's message if `evaluate` is false or the cause is not recorded."""
    record = scheduler.records[number]
    if not evaluate or record.frame < 0:
        return record.message or NOT_TRIED
    matrix = filter_matrix(scheduler.records.decision(number))
    if not matrix.known.all():
        return record.message
    state = scheduler.state
    nodes = {node.metadata.name: node for node in state.nodes.nodes if node is not None}
    requests = accounted_requests(pod, state.request_gates).requests
    return root_cause(matrix, pod, nodes, requests, SchedulerSurroundings(scheduler, pod)).summary


def _resources(scheduler: Scheduler) -> list[ResourceUse]:
    nodes, usage = scheduler.state.nodes, scheduler.state.usage
    shut = nodes.unschedulable.copy()
    shut[[row for row, node in enumerate(nodes.nodes) if node is not None and not is_ready(node)]] = True
    found = [_use("pods", usage[POD_COUNT], nodes.allowed_pods, shut)]
    for name, number in nodes.resources.items():
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
    """Render the report as a list of parts for `bayplan.analysis.report.print_parts`."""
    cause = next((CommonCause(text, len(keys)) for text, keys in facts.reasons if text != NOT_TRIED), None)
    pods = facts.placed + facts.waiting + facts.gated
    sentence = cluster_sentence(
        pods=pods, waiting=facts.waiting, gated=facts.gated, nodes=facts.nodes, reasons=(), cause=cause
    )
    parts: list[RenderableType] = [Text(), Text(f"{sentence}.", style="bold"), _overview(facts, pods)]
    if facts.reasons:
        heading = f"Pending: {format_count(facts.waiting, 'pod')}"
        parts += [Text(), Text(heading, style="bold"), Padding(_waiting(facts.reasons), (0, 0, 0, 2))]
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
    rows.append(("  pending", f"{facts.waiting:,}"))
    if facts.gated:
        rows.append(("  gated", f"{facts.gated:,}"))
    total = sum(facts.decisions.values())
    rows.append(("decisions", f"{total:,}: {', '.join(counted)}" if counted else f"{total:,}"))
    for name, text in rows:
        table.add_row(Text(name), Text(text))
    return table


def _waiting(reasons: Sequence[tuple[str, Sequence[str]]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for reason, pods in reasons[:SHOWN_REASONS]:
        examples = format_list(pods[:EXAMPLES], more=max(len(pods) - EXAMPLES, 0))
        table.add_row(Text(f"{len(pods):,}"), Text.assemble(f"{reason}\n", (examples, "dim")))
    if len(reasons) > SHOWN_REASONS:
        table.add_row(Text(), Text(f"... and {len(reasons) - SHOWN_REASONS:,} more reasons", style="dim"))
    return table


def _utilisation(resources: Sequence[ResourceUse]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="")
    table.add_column()
    for name in ("requested", "of", "", "largest free"):
        table.add_column(name, justify="right", no_wrap=True)
    for use in resources:
        share = format_share(use.requested / use.allocatable) if use.allocatable else "-"
        amounts = [format_amount(use.resource, amount) for amount in (use.requested, use.allocatable, use.largest_gap)]
        table.add_row(Text(use.resource), amounts[0], amounts[1], share, amounts[2])
    return table
