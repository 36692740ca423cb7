"""One seed and one sequence of calls give one sequence of events, byte for byte, under any hash seed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bayplan.cluster.store import ChangeEvent
from bayplan.objects.node import Node
from tests.cluster.cluster_fixture import ClusterFixture, job, node, pod, template, workload

ROOT = Path(__file__).resolve().parents[2]


def busy_fixture(seed: int) -> ClusterFixture:
    """Run one workload of each kind, with updates and node changes, for ten minutes."""
    fixture = ClusterFixture(nodes=5, seed=seed, start_delay_s=1, termination_s=3)
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    cron = workload("CronJob", "tick", schedule="* * * * *", jobTemplate={"spec": {"template": template()}})
    fixture.apply(
        workload("Deployment", "web", replicas=7),
        workload("StatefulSet", "db", replicas=3, volumeClaimTemplates=claims),
        workload("DaemonSet", "agent"),
        job("calc", run_time="20s", completions=9, parallelism=4, completionMode="Indexed"),
        cron,
        *(pod(f"plain-{number}", annotations={"bayplan.io/run-time": f"{number}s"}) for number in range(20)),
    )
    fixture.run_until(120)
    fixture.apply(
        workload("Deployment", "web", replicas=9, image="app:2"), workload("DaemonSet", "agent", image="app:2")
    )
    fixture.run_until(240)
    fixture.delete(Node, "node-1")
    fixture.apply(node("late", labels={"zone": "a"}), node("node-2", taints=[{"key": "mine", "effect": "NoExecute"}]))
    fixture.run_until(600)
    return fixture


def digest(events: list[ChangeEvent]) -> str:
    total = hashlib.sha256()
    for event in events:
        total.update(f"{event.type} {event.kind.__name__} {event.resource_version}\n".encode())
        total.update(msgspec.json.encode(event.object))
    return total.hexdigest()


def test_equal_seeds_produce_equal_events() -> None:
    first = busy_fixture(3)
    assert len(first.events) > 300
    assert digest(first.events) == digest(busy_fixture(3).events)
    assert digest(first.events) != digest(busy_fixture(4).events)
    assert first.cluster.failures() == {}


@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_events_are_independent_of_the_hash_seed(hash_seed: str) -> None:
    program = "from tests.cluster.test_determinism import busy_fixture, digest; print(digest(busy_fixture(3).events))"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    out = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == digest(busy_fixture(3).events)
