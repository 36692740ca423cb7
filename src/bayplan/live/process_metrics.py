"""Metrics of the process and the release: those of Prometheus' client libraries and of every Kubernetes component."""

from __future__ import annotations

import platform
import resource
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bayplan.base.version import KUBERNETES_VERSION
from bayplan.framework.feature_gate_table import GATES
from bayplan.framework.feature_gates import FeatureGates

_NETWORK = Path("/proc/self/net/netstat")
_UNLIMITED = float(1 << 64)
_ALWAYS = "GA"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def register_process_metrics(registry: CollectorRegistry, feature_gates: FeatureGates) -> None:
    """Register metrics of this process, its build, and its feature gates."""
    ProcessCollector(registry=registry)
    # Upstream exports Go's garbage collector and version; these are Python's.
    GCCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(_LimitsAndNetwork())
    release = KUBERNETES_VERSION.removeprefix("v")
    major, minor, _ = release.split(".")
    build = {
        "build_date": "",
        "compiler": platform.python_implementation().lower(),
        "git_commit": "",
        "git_tree_state": "",
        "git_version": KUBERNETES_VERSION,
        "go_version": "",
        "major": major,
        "minor": minor,
        "platform": f"{platform.system().lower()}/{_MACHINES.get(platform.machine(), platform.machine())}",
    }
    _set_one(registry, "kubernetes_build_info", "The version of Kubernetes whose decisions Bayplan makes.", build)
    versions = {
        "binary": release,
        "component": "kube",
        "emulation": f"{major}.{minor}",
        "min_compat": f"{major}.{int(minor) - 1}",
    }
    _set_one(registry, "version_info", "The version of Kubernetes whose behaviour Bayplan has.", versions)
    gates = Gauge(
        "kubernetes_feature_enabled", "Feature gates: whether they are on.", ("name", "stage"), registry=registry
    )
    for name, is_on in feature_gates.all().items():
        stage = GATES[name][0]
        gates.labels(name, "" if stage == _ALWAYS else stage).set(is_on)


def _set_one(registry: CollectorRegistry, name: str, text: str, labels: dict[str, str]) -> None:
    Gauge(name, text, tuple(labels), registry=registry).labels(*labels.values()).set(1)


class _LimitsAndNetwork(Collector):
    """Metrics that Go's client library has and Python's lacks."""

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        most = _UNLIMITED if limit == resource.RLIM_INFINITY else float(limit)
        text = "Maximum amount of virtual memory available in bytes."
        yield GaugeMetricFamily("process_virtual_memory_max_bytes", text, most)
        octets = _octets()
        for name, field, verb in (("receive", "InOctets", "received"), ("transmit", "OutOctets", "sent")):
            if field in octets:
                text = f"Number of bytes {verb} by the process over the network."
                yield CounterMetricFamily(f"process_network_{name}_bytes", text, octets[field])


def _octets() -> dict[str, int]:
    """Return the kernel's network counters by their names; empty if they can't be read."""
    try:
        lines = [line.split() for line in _NETWORK.read_text().splitlines() if line.startswith("IpExt:")]
    except OSError:
        return {}
    return dict(zip(lines[0][1:], map(int, lines[1][1:]), strict=True)) if len(lines) == 2 else {}
