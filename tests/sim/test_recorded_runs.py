"""Recorded runs of the real scheduler with a real API server, repeated in virtual time: events, conditions, nodes.

The actions of the recorded test are repeated at the same times, and the reactions of the scheduler are compared. The
recordings have no kubelet and no controllers, so both start to act after an hour here: pods stay pending, and
terminating pods stay.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from typing import Any

import pytest

from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.kubelet import KubeletOptions
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.select_host import first_by_name
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode, find_kind
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.sim.operations import Apply, Delete, Operation
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import ClusterOptions, VirtualCluster
from tests.shared import recording
from tests.sim.simulations import START

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
MILLISECOND = 1_000_000
HOUR = 3_600_000 * MILLISECOND
RUNS: dict[str, dict[str, Any]] = {
    run["id"]: run
    for run in map(json.loads, gzip.decompress(recording("e2e", "runs.jsonl.gz").read_bytes()).splitlines())
}
TIES = ("ten_pods", "preempts_several")
"""Runs in which lots, or the order of a map, decided between nodes or victims. Else the recorded choice is the first by name."""


def merged(old: Any, patch: Any) -> Any:
    """Return a document after a JSON merge patch; the recorded strategic merge patches have the same effect as one."""
    if not isinstance(patch, dict):
        return patch
    found = dict(old) if isinstance(old, dict) else {}
    for key, inner in patch.items():
        found[key] = merged(found.get(key), inner)
    return {key: inner for key, inner in found.items() if inner is not None}


def operations(steps: list[dict[str, Any]]) -> list[tuple[int, Operation]]:
    """Return the actions of the test. All actions before the scheduler's start happen when it starts."""
    documents: dict[tuple[str, str], dict[str, Any]] = {}
    found: list[tuple[int, Operation]] = []
    start = next(step["at_ms"] for step in steps if step["op"] == "scheduler starts")
    for step in steps:
        at = max(step["at_ms"], start)
        if step["op"] == "create":
            document = step["object"]
            if document["kind"] == "PersistentVolume" and at > start:
                # In the recording, the test provisions and binds volumes itself; here the simulated cluster's
                # controllers do so.
                continue
        elif step["op"] == "patch" and not step["kind"].startswith("PersistentVolume"):
            document = merged(documents[step["kind"], step["name"]], step["patch"])
        elif step["op"] == "delete":
            row = find_kind("v1", step["kind"])
            assert row is not None
            gone = Delete(row.struct, f"default/{step['name']}", grace_seconds=step["gracePeriodSeconds"])
            found.append((at, gone))
            continue
        else:
            continue
        documents[document["kind"], document["metadata"]["name"]] = document
        found.append((at, Apply(default_object(decode(document)))))
    return found


def replay(recorded: dict[str, Any], queue_type: type[SchedulingQueue]) -> Simulator:
    """Return a simulator that has gone through a recorded run, up to two seconds after its last step."""
    gates = FeatureGates()
    configuration = load_configuration({**HEADER, **(recorded["config"] or {})}, feature_gates=gates)
    scheduler = assemble_scheduler(
        configuration,
        in_tree_registry(),
        feature_gates=gates,
        start_ns=START,
        pick=first_by_name,
        queue_type=queue_type,
    )
    kubelet = KubeletOptions(start_delay_ns=HOUR, termination_time_ns=HOUR)
    cluster = VirtualCluster(RandomStreams(0), ClusterOptions(kubelet=kubelet, sync_delay_ns=HOUR))
    made = Simulator(scheduler, cluster, seed=0, start_ns=START, check=True)
    steps = recorded["steps"]
    for at_ms, operation in operations(steps):
        made.at(START + at_ms * MILLISECOND, operation)
    made.run(until_ns=START + (steps[-1]["at_ms"] + 2000) * MILLISECOND)
    return made


def plain(note: str) -> str:
    return re.sub(r"by pod \S+ on", "by pod UID on", note)


def conditions_of(pod: Pod) -> list[dict[str, str]]:
    return [
        {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
        for each in pod.status.conditions
    ]


@pytest.mark.parametrize("queue_type", [SchedulingQueue, EventDrivenQueue])
@pytest.mark.parametrize("name", RUNS)
def test_recorded_runs_yield_the_same_events_conditions_and_nodes(name: str, queue_type: type[SchedulingQueue]) -> None:
    recorded = RUNS[name]
    made = replay(recorded, queue_type)
    observed = recorded["observed"]
    want_events = [
        (each["regarding"]["name"], each["type"], each["reason"], each["action"], plain(each["note"]))
        for each in observed["events"]
        if each["reason"] != "LeaderElection"
    ]
    found_events = [
        (each.pod.partition("/")[2], each.type, each.reason, each.action, plain(each.note))
        for each in made.result().events
    ]
    want_pods: dict[str, Any] = {
        key: (
            each["nodeName"] or "",
            each["nominatedNodeName"] or "",
            each["terminating"],
            [
                {field: condition.get(field) or "" for field in ("type", "status", "reason", "message")}
                for condition in each["conditions"] or []
            ],
        )
        for key, each in observed["pods"].items()
    }
    found_pods: dict[str, Any] = {
        key.partition("/")[2]: (
            pod.spec.node_name,
            pod.status.nominated_node_name,
            pod.metadata.deletion_timestamp is not None,
            conditions_of(pod),
        )
        for key, pod in made.cluster.store.pods.items()
    }
    if name in TIES:
        assert Counter(each[1:4] for each in found_events) == Counter(each[1:4] for each in want_events)
        nodes = Counter(each[0] for each in found_pods.values())
        assert sorted(nodes.values()) == sorted(Counter(each[0] for each in want_pods.values()).values())
        return
    assert Counter(found_events) == Counter(want_events)
    assert found_pods == want_pods
