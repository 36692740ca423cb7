"""Schedule two training jobs with the default scheduler and with Gang, and print both results.

Run ``python examples/gang/compare.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bayplan.analysis.units import format_duration
from bayplan.app.simulation import SimulationOptions, simulate
from bayplan.contrib.gang import GROUP_LABEL
from bayplan.sim.result import PodTimeline, SimulationResult

FOLDER = Path(__file__).resolve().parent
INPUT = [str(FOLDER / "cluster.yaml"), str(FOLDER / "jobs.yaml")]


def main() -> None:
    """Print the report."""
    print("Two jobs of 6 workers each on 8 GPUs; their pods arrive in turn.")
    for title, config in (("default scheduler", None), ("with Gang", FOLDER / "gang.yaml")):
        result = simulate(SimulationOptions(paths=INPUT, config=config))
        print(f"\n== {title}\n")
        print_jobs(result)
        print_events(result)


def print_jobs(result: SimulationResult) -> None:
    """Print for each job how many workers were placed and when, when it finished, and the outcome."""
    print(f"{'job':<6}{'placed':<10}{'when':<10}{'finished':<10}outcome")
    jobs: dict[str, list[PodTimeline]] = {}
    for timeline in result.pods:
        assert timeline.pod is not None
        jobs.setdefault(timeline.pod.metadata.labels[GROUP_LABEL], []).append(timeline)
    for job, workers in jobs.items():
        placed = [worker.bound_ns - result.start_ns for worker in workers if worker.bound_ns is not None]
        ended = [worker.ended_ns - result.start_ns for worker in workers if worker.ended_ns is not None]
        done = len(ended) == len(workers)
        print(
            f"{job:<6}{f'{len(placed)} of {len(workers)}':<10}{format_duration(max(placed, default=0)):<10}"
            f"{format_duration(max(ended)) if done else 'never':<10}{outcome(placed, done)}"
        )


def outcome(placed: Sequence[int], done: bool) -> str:
    """Return the outcome of a job in words."""
    if done:
        return "trained"
    return "holds GPUs and waits for the rest of its workers" if placed else "waits"


def print_events(result: SimulationResult) -> None:
    """Print the scheduler's events, with the number of equal ones."""
    print()
    said: Counter[tuple[int, str, str]] = Counter()
    for event in result.events:
        # The first sentence is enough; the note of a placement names the pod, so shorten it further.
        note = "Successfully assigned" if event.reason == "Scheduled" else event.note.split(". ")[0].rstrip(".")
        said[event.first_ns - result.start_ns, event.reason, note] += event.count
    for (at_ns, reason, note), count in said.items():
        print(f"{format_duration(at_ns):>6}  {count} x {reason}: {note}")


if __name__ == "__main__":
    main()
