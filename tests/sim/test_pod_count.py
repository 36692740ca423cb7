"""Workloads that request too many pods are refused before any pod is created."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bayplan.app.simulation import SimulationOptions, prepare_simulation
from bayplan.base.errors import InputError
from bayplan.objects.kinds import decode
from bayplan.sim.pod_count import check_pod_count

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def workload(kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    version = {"ReplicationController": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}.get(kind, "apps/v1")
    metadata = {"name": "w", "namespace": "default", **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"template": TEMPLATE, **spec}}


CRON = {"schedule": "* * * * *", "jobTemplate": {"spec": {"completions": 1001}}}
OWNED = {"ownerReferences": [{"kind": "Deployment", "name": "w", "uid": "d", "controller": True}]}


@pytest.mark.parametrize(
    ("documents", "want"),
    [
        pytest.param([workload("Deployment", {"replicas": 1000})], "", id="as many as allowed"),
        pytest.param(
            [workload("Deployment", {"replicas": 1001})], "Deployment default/w $.spec.replicas", id="one more"
        ),
        pytest.param(
            [workload("ReplicaSet", {"replicas": 1001})], "ReplicaSet default/w $.spec.replicas", id="ReplicaSet"
        ),
        pytest.param(
            [workload("StatefulSet", {"replicas": 1001})], "StatefulSet default/w $.spec.replicas", id="StatefulSet"
        ),
        pytest.param(
            [workload("ReplicationController", {"replicas": 1001})],
            "ReplicationController default/w $.spec.replicas",
            id="ReplicationController",
        ),
        pytest.param(
            [workload("Job", {"completions": 1001})], "Job default/w $.spec.completions", id="a Job's completions"
        ),
        pytest.param(
            [workload("Job", {"parallelism": 1001})], "Job default/w $.spec.parallelism", id="or its parallelism"
        ),
        pytest.param(
            [workload("Job", {"parallelism": 1001, "completions": 5})],
            "",
            id="which completions bound, if there are any",
        ),
        pytest.param(
            [workload("CronJob", CRON)], "CronJob default/w $.spec.jobTemplate.spec.completions", id="a CronJob's"
        ),
        pytest.param(
            [workload("Deployment", {"replicas": 400}, name="a"), workload("Deployment", {"replicas": 601}, name="b")],
            "Deployment default/b $.spec.replicas",
            id="all together, reported with the largest",
        ),
        pytest.param(
            [workload("Deployment", {"replicas": 900}, uid="d"), workload("ReplicaSet", {"replicas": 900}, **OWNED)],
            "",
            id="a ReplicaSet and its Deployment count once",
        ),
        pytest.param(
            [workload("ReplicaSet", {"replicas": 1001}, **OWNED)],
            "ReplicaSet default/w $.spec.replicas",
            id="a ReplicaSet without its Deployment counts",
        ),
        pytest.param([workload("Deployment", {})], "", id="one replica by default"),
    ],
)
def test_too_many_workload_pods_are_refused(documents: list[dict[str, Any]], want: str) -> None:
    objects = [decode(document) for document in documents]
    if not want:
        check_pod_count(objects, 1000)
        return
    with pytest.raises(InputError) as refused:
        check_pod_count(objects, 1000, hint="--max-pods {}")
    assert refused.value.what == want
    assert refused.value.wanted == "at most 1,000 pods of all workloads together"
    assert refused.value.hint == "--max-pods 1001"


def test_a_simulation_of_two_billion_pods_is_refused_before_it_starts(tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    selector = "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}"
    manifest.write_text(
        f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 2000000000, {selector}}}}}"
    )
    with pytest.raises(InputError) as refused:
        prepare_simulation(SimulationOptions(paths=[str(manifest)]))
    assert str(refused.value) == (
        "Deployment default/web $.spec.replicas: expected at most 500,000 pods of all workloads together, got 2,000,000,000; "
        "try --max-pods 2000000000"
    )
    prepare_simulation(SimulationOptions(paths=[str(manifest)], max_pods=2_000_000_000))
