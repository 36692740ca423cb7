"""The cases of the scheduler_perf benchmark have upstream's counts, thresholds and requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from benchmarks.scheduler_perf.case import Batch, Case
from benchmarks.scheduler_perf.cases import CASES, MATCHING, SHAPED_LIKE
from benchmarks.scheduler_perf.templates import OURS, PODDELETE, TEMPLATES

from tests.shared import shared_path

FILES = ("affinity", "misc", "topology_spreading", "volumes", "default_preemption", "event_handling")
NOT_UPSTREAM = (MATCHING, SHAPED_LIKE, "5kNodes/20kInit, preemptors alone")

NOT_SAVED = (
    "PreemptionBasic/5000Nodes",
    "SchedulingWithResourceClaimTemplate/5000pods_500nodes",
    "SchedulingWithExtendedResource/5000pods_500nodes",
)
"""Cases that the saved files lack: upstream, the first is commented out; the suite of devices is not among the files."""

BY_NAME = {case.label: case for case in CASES if case.workload not in NOT_UPSTREAM and case.label not in NOT_SAVED}


def workloads() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return upstream's cases and workloads by ``case/workload``; if two files have one, that of the later file."""
    found = {}
    for name in FILES:
        text = shared_path("data", "scheduler_perf", name, "performance-config.yaml").read_text()
        for case in yaml.safe_load(text):
            for workload in case["workloads"]:
                found[f"{case['name']}/{workload['name']}"] = (case, workload)
    return found


def pods_of(case: Mapping[str, Any], workload: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the template and number of pods of each operation that makes pods, in order."""
    found = []
    for op in case["workloadTemplate"]:
        times, made = 1, op
        if op["opcode"] == "createPodSets":
            times, made = workload["params"][op["countParam"][1:]], op["createPodsOp"]
        if made["opcode"] == "createPods":
            count = made["count"] if "count" in made else workload["params"][made["countParam"][1:]]
            path = made.get("podTemplatePath", case.get("defaultPodTemplatePath", "pod-default.yaml"))
            found.append((path.rsplit("/", 1)[-1].removesuffix(".yaml"), times * count))
    return found


def nodes_of(case: Mapping[str, Any], workload: Mapping[str, Any]) -> int:
    """Return the number of nodes."""
    ops = [op for op in case["workloadTemplate"] if op["opcode"] == "createNodes"]
    return sum(op["count"] if "count" in op else workload["params"][op["countParam"][1:]] for op in ops)


def in_all(batch: Batch) -> tuple[str, int]:
    # Upstream, pods that request an extended resource have a template of their own.
    return ("pod-with-extended-resource" if batch.extended else batch.template, batch.count * batch.namespaces)


@pytest.mark.parametrize("label", sorted(BY_NAME))
def test_a_case_has_the_counts_and_threshold_of_its_workload(label: str) -> None:
    case: Case = BY_NAME[label]
    known = workloads()[label]
    assert case.nodes + case.tainted + case.named_node == nodes_of(*known)
    assert case.floor == (known[1].get("threshold") or 0)
    assert [in_all(batch) for batch in (*case.before, case.measured, *case.also)] == pods_of(*known)


@pytest.mark.parametrize("name", sorted(set(TEMPLATES) - OURS - set(PODDELETE)))
def test_pod_templates_match_upstream(name: str) -> None:
    upstream = yaml.safe_load(shared_path("data", "scheduler_perf", "templates", f"{name}.yaml").read_text())
    ours: Any = TEMPLATES[name]
    assert ours.get("labels", {}) == upstream["metadata"].get("labels", {})
    wanted = upstream["spec"]["containers"][0].get("resources", {}).get("requests", {})
    found = ours["spec"]["containers"][0].get("resources", {}).get("requests", {})
    assert {key: str(amount) for key, amount in found.items()} == {key: str(amount) for key, amount in wanted.items()}
    for field in ("affinity", "priority", "schedulingGates", "terminationGracePeriodSeconds"):
        assert ours["spec"].get(field) == upstream["spec"].get(field)


@pytest.mark.parametrize("case", CASES, ids=[case.label for case in CASES])
def test_small_cases_stay_within_limits(case: Case) -> None:
    small = case.small()
    assert small.nodes + small.tainted + small.named_node <= 160
    assert sum(batch.count * batch.namespaces for batch in (*small.before, small.measured)) <= 600
