"""Format the results of an autoscaler and a descheduler: costs by group, then events."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.units import format_duration
from bayplan.base.counted_nouns import format_count
from bayplan.sim.descheduled import Descheduled
from bayplan.sim.result import SimulationResult
from bayplan.sim.scaling import ScalingEvent, ScalingKind, ScalingSummary

MAX_EVENTS = 20
"""Maximum number of events listed; the report only counts further evictions and scaling events."""


def agent_lines(result: SimulationResult) -> list[str]:
    """Return the results of the autoscaler and the descheduler of a run as lines; [] if neither ran."""
    lines = [] if result.scaling is None else scaling_lines(result.scaling, result.start_ns)
    return lines + ([] if result.descheduled is None else descheduling_lines(result.descheduled, result.start_ns))


def scaling_lines(summary: ScalingSummary, start_ns: int) -> list[str]:
    """Return the costs of node groups and the events of an autoscaler as lines, with times since the start of the run."""
    lines = ["", f"Autoscaling: cost {summary.cost:.2f}"]
    for cost in summary.costs:
        nodes = f"{format_count(cost.nodes, 'node')}, {cost.peak:,} at once, {cost.node_hours:.2f} node hours"
        lines.append(f"  {cost.group}: {nodes}, cost {cost.cost:.2f}")
    lines += [f"  {_event_line(event, start_ns)}" for event in summary.events[:MAX_EVENTS]]
    if len(summary.events) > MAX_EVENTS:
        lines.append(f"  and {len(summary.events) - MAX_EVENTS:,} more events")
    return lines


def descheduling_lines(evicted: Sequence[Descheduled], start_ns: int) -> list[str]:
    """Return the evictions of a descheduler as lines, with times since the start of the run."""
    lines = ["", f"Descheduling: {format_count(len(evicted), 'eviction')}"]
    for each in evicted[:MAX_EVENTS]:
        lines.append(
            f"  {format_duration(each.time_ns - start_ns)}: {each.pod} from {each.node or 'no node'} ({each.plugin})"
        )
    if len(evicted) > MAX_EVENTS:
        lines.append(f"  and {len(evicted) - MAX_EVENTS:,} more evictions")
    return lines


def _event_line(event: ScalingEvent, start_ns: int) -> str:
    time = format_duration(event.time_ns - start_ns)
    if event.kind is ScalingKind.SCALE_UP:
        pods = f" for {format_count(len(event.pods), 'pending pod')}" if event.pods else f", {event.reason}"
        return f"{time}: {event.group} grows by {format_count(len(event.nodes), 'node')}{pods}"
    names = ", ".join(event.nodes)
    if event.kind is ScalingKind.GIVEN_UP:
        return f"{time}: {names} stays, {event.reason}"
    return f"{time}: {names} is removed, {event.reason}"
