"""Read traces in tests: the bundled samples, and files with given text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bayplan.formats.inputs import load_inputs
from bayplan.formats.trace import TimedPod, Trace
from bayplan.objects.quantity import Quantity, QuantityLike, parse_quantity
from tests.project.tree import ROOT

SAMPLES = ROOT / "examples" / "traces"
SECOND = 1_000_000_000
HEAD = "apiVersion: bayplan.io/v1alpha1\nkind: Trace\n"


def load(*paths: str | Path) -> Trace:
    trace = load_inputs([str(path) for path in paths]).trace
    assert trace is not None
    return trace


def sample(name: str, text: str, folder: Path) -> Trace:
    """Load a bundled sample through a Trace file to which `text` adds fields."""
    path = folder / "trace.yaml"
    path.write_text(f"{HEAD}files: ['{SAMPLES}/{name}']\n{text}", encoding="utf-8")
    return load(path)


def times(pods: list[TimedPod]) -> dict[str, tuple[float, float | None, float | None]]:
    """Return arrival time, run time and deletion time in seconds, by the pod's name."""

    def seconds(value: int | None) -> float | None:
        return None if value is None else value / SECOND

    return {
        each.pod.metadata.name: (each.arrival_ns / SECOND, seconds(each.run_time_ns), seconds(each.gone_at_ns))
        for each in pods
    }


def requests(trace: Trace) -> dict[str, dict[str, str]]:
    return {
        each.pod.metadata.name: {key: str(text) for key, text in each.pod.spec.containers[0].resources.requests.items()}
        for each in trace.pods
    }


def offers(trace: Trace) -> dict[str, dict[str, Quantity]]:
    return {node.metadata.name: quantities(node.status.allocatable) for node in trace.nodes}


def quantities(amounts: Mapping[str, QuantityLike]) -> dict[str, Quantity]:
    """Return the amounts as quantities, which compare by value: 64 equals 64000m."""
    return {key: parse_quantity(text) for key, text in amounts.items()}
