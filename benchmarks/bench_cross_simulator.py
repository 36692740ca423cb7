"""The published comparison of simulators: 1,067 pods on 100 nodes from YAML manifests, whole process.

The original uses pods and nodes of an Alibaba trace. This benchmark generates a case of the same shape: nodes of two
sizes, pods with one container that requests 0.5 to 16 CPUs, one manifest each. Goal: under 0.5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks import Figure
from benchmarks.processes import digest_in, run_bayplan

SIZES = {"small": (10, 60), "large": (100, 1_067)}
TRIES = 3
"""Number of runs. The fastest one counts, because other load only adds time."""

NODE = """apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels:
    kubernetes.io/hostname: {name}
    topology.kubernetes.io/zone: zone-{zone}
status:
  capacity:
    cpu: "{cpu}"
    memory: {memory_gib}Gi
    pods: "110"
  allocatable:
    cpu: "{cpu}"
    memory: {memory_gib}Gi
    pods: "110"
"""

POD = """apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: default
  labels:
    app: app-{app}
spec:
  containers:
  - name: main
    image: registry.example/app-{app}:v1
    resources:
      requests:
        cpu: {cpu_milli}m
        memory: {memory_mib}Mi
      limits:
        cpu: {cpu_milli}m
        memory: {memory_mib}Mi
"""


def write_manifests(folder: Path, nodes: int, pods: int) -> list[str]:
    """Write nodes.yaml and pods.yaml from a fixed seed; return their paths."""
    random = Random(1)
    texts = []
    for number in range(nodes):
        cpu, memory_gib = random.choice(((96, 512), (104, 768)))
        texts.append(NODE.format(name=f"node-{number:03}", zone=number % 3, cpu=cpu, memory_gib=memory_gib))
    folder.joinpath("nodes.yaml").write_text("---\n".join(texts))
    texts = []
    for number in range(pods):
        cpu_milli = random.choice((500, 1000, 2000, 4000, 8000, 16000))
        memory_mib = cpu_milli * random.choice((1, 2, 4))
        texts.append(POD.format(name=f"pod-{number:05}", app=number % 60, cpu_milli=cpu_milli, memory_mib=memory_mib))
    folder.joinpath("pods.yaml").write_text("---\n".join(texts))
    return [str(folder / "nodes.yaml"), str(folder / "pods.yaml")]


def figures(size: str) -> Iterator[Figure]:
    """Yield the wall time of the whole process."""
    nodes, pods = SIZES[size]
    with TemporaryDirectory() as folder:
        paths = write_manifests(Path(folder), nodes, pods)
        runs = [run_bayplan("simulate", *paths, "--seed", "1") for _ in range(1 if size == "small" else TRIES)]
    fastest = min(runs)
    yield Figure(
        name=f"{pods:,} pods on {nodes:,} nodes, YAML to report",
        value=fastest.seconds,
        unit="s",
        decisions_hash=digest_in(fastest.stdout),
        note=f"imports included; processor time {fastest.cpu_s:.2f} s; peak memory {fastest.peak_bytes / 1e6:,.0f} MB",
    )
