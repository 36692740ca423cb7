"""Print each pod's moves through the scheduling queue, one line per move, with times in nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayplan.base.counted_nouns import format_count
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time
from bayplan.sim.result import SimulationResult
from bayplan.sim.traced_queue import BOUND, PERMIT, QueueMove

NOTE_WIDTH = 100


def print_timeline(result: SimulationResult) -> None:
    """Print the queue moves of a run that recorded its timeline."""
    moves = result.moves or ()
    pods = len(dict.fromkeys(move.uid for move in moves))
    print(
        f"\nTimeline: {len(moves)} moves of {format_count(pods, 'pod')}, in seconds since {format_time(result.start_ns)}"
    )
    for line in timeline_lines(moves, result.start_ns):
        print(line)


def timeline_lines(moves: Sequence[QueueMove], start_ns: int) -> Iterator[str]:
    """Yield a line for each move, in aligned columns."""
    ways = [f"{move.source or 'new'} -> {move.target}" for move in moves]
    times = [seconds(move.time_ns - start_ns) for move in moves]
    widths = [max(map(len, column), default=0) for column in (times, [move.pod for move in moves], ways)]
    for move, time, way in zip(moves, times, ways, strict=True):
        yield f"{time:>{widths[0]}}  {move.pod:<{widths[1]}}  {way:<{widths[2]}}  {_why(move, start_ns)}".rstrip()


def seconds(time_ns: int) -> str:
    """Format a time in seconds with nine decimals."""
    return f"{time_ns // SECOND_NS}.{time_ns % SECOND_NS:09d}"


def _why(move: QueueMove, start_ns: int) -> str:
    text = move.cause
    if move.target == "in flight":
        text += f", attempt {move.attempt}"
    elif move.target in (BOUND, PERMIT):
        return f"{text} to {move.note}" if move.target == BOUND else f"{text} on {move.note}"
    elif move.plugins and move.target in ("unschedulable", "gated", "backoff"):
        text += f" [{' '.join(move.plugins)}]"
    if move.backoff_end_ns is not None:
        text += f", backs off until {seconds(move.backoff_end_ns - start_ns)}"
    if move.note:
        note = move.note.partition(". ")[0].rstrip(".")
        text += f": {note if len(note) <= NOTE_WIDTH else note[: NOTE_WIDTH - 4] + ' ...'}"
    return text
