"""The bundled samples of each format, value by value."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats.trace import Trace
from bayplan.formats.traces.shapes import JOB
from tests.formats.traces.reading import SAMPLES, load, offers, quantities, requests, times

PODS = {"pods": "1000"}


def left_out(trace: Trace) -> dict[str, str]:
    return {each.what: each.problem for each in trace.warnings}


def test_alibaba_2017_added_machines_become_nodes() -> None:
    trace = load(SAMPLES / "alibaba-2017" / "server_event.csv")
    assert trace.format == "Alibaba 2017"
    assert offers(trace) == {
        "machine-1": quantities({"cpu": "64", "memory": str(round(0.6899697150104833 * 2**38)), **PODS}),
        "machine-2": quantities({"cpu": "64", "memory": str(2**38), **PODS}),
    }
    assert left_out(trace) == {"errors of machines": "1 skipped"}


def test_alibaba_2017_a_machine_that_comes_back_is_one_node(tmp_path: Path) -> None:
    events = tmp_path / "server_event.csv"
    events.write_text("0,1,add,,64,0.5,0.5\n5,1,softerror,x,,,\n9,1,add,,64,0.5,0.5\n0,2,add,,64,0.5,0.5\n")
    assert list(offers(load(events))) == ["machine-1", "machine-2"]


def test_alibaba_2017_tasks_become_a_pod_per_instance() -> None:
    trace = load(SAMPLES / "alibaba-2017" / "batch_task.csv")
    assert times(trace.pods) == {
        "10-1-0": (100, 300, None),
        "10-1-1": (100, 300, None),
        "10-1-2": (100, 300, None),
        "10-2-0": (160, 540, None),
        "10-2-1": (160, 540, None),
        "11-3": (300, None, None),
    }
    assert requests(trace)["10-1-0"] == {"cpu": "1000m", "memory": str(round(0.0054 * 2**38))}
    assert trace.pods[0].pod.metadata.annotations == {JOB: "10"}


def test_alibaba_2017_instances_replace_the_pods_of_their_task() -> None:
    trace = load(SAMPLES / "alibaba-2017" / "batch_instance.csv", SAMPLES / "alibaba-2017" / "batch_task.csv")
    assert times(trace.pods) == {
        "10-1-0": (101, 119, None),
        "10-1-1": (101, 139, None),
        "10-1-2": (112, 288, None),
        "10-2-0": (161, 359, None),
        "10-2-1": (165, 535, None),
    }
    assert left_out(trace) == {"earlier attempts of instances": "1 skipped"}
    assert requests(trace)["10-2-1"]["cpu"] == "500m"


def test_alibaba_2017_containers_run_until_removed() -> None:
    trace = load(SAMPLES / "alibaba-2017" / "container_event.csv")
    assert times(trace.pods) == {"container-1": (0, None, None), "container-2": (120, 780, None)}
    assert requests(trace)["container-2"]["cpu"] == "8000m"


def test_alibaba_2018_machines_containers_and_tasks_are_loaded() -> None:
    trace = load(
        *(SAMPLES / "alibaba-2018" / f"{name}.csv" for name in ("machine_meta", "container_meta", "batch_task"))
    )
    assert times(trace.pods) == {
        "j-1-m1-0": (86400, 60, None),
        "j-1-m1-1": (86400, 60, None),
        "j-1-m1-2": (86400, 60, None),
        "j-1-m1-3": (86400, 60, None),
        "j-1-r2-1-0": (86460, 240, None),
        "j-1-r2-1-1": (86460, 240, None),
        "j-2-task-nzg3odawndgz": (87000, 3600, None),
        "j-3-m1-0": (259200, None, None),
        "j-3-m1-1": (259200, None, None),
        "j-3-m1-2": (259200, None, None),
        "c-1": (0, None, None),
        "c-2": (86400, 86400, None),
    }
    assert requests(trace)["c-1"] == {"cpu": "4000m", "memory": str(round(0.0156 * 2**38))}
    assert requests(trace)["j-1-r2-1-0"] == {"cpu": "500m", "memory": str(round(0.0015 * 2**38))}
    assert offers(trace)["m-3"] == quantities({"cpu": "96", "memory": "128Gi", **PODS})
    assert trace.nodes[1].metadata.labels["trace.bayplan.io/failure-domain-2"] == "b"
    assert left_out(trace) == {"rows that never started": "1 skipped"}


def test_alibaba_2018_instances_have_individual_times(tmp_path: Path) -> None:
    rows = [
        "ins_1,M1,j_1,1,Terminated,86401,86460,m_1,1,1,0.5,1.0,0.1,0.2",
        "ins_2,M1,j_1,1,Failed,86401,86410,m_1,1,2,0.5,1.0,0.1,0.2",
        "ins_2,M1,j_1,1,Terminated,86411,86450,m_2,2,2,0.5,1.0,0.1,0.2",
        "ins_3,M9,j_9,1,Terminated,86411,86450,m_2,1,1,,,,",
    ]
    (tmp_path / "batch_instance.csv").write_text("\n".join(rows))
    trace = load(tmp_path / "batch_instance.csv", SAMPLES / "alibaba-2018" / "batch_task.csv")
    assert times(trace.pods) == {"j-1-m1-ins-1": (86401, 59, None), "j-1-m1-ins-2": (86411, 39, None)}
    assert requests(trace)["j-1-m1-ins-2"]["cpu"] == "1000m"


def test_alibaba_gpu_2020_tasks_arrive_when_their_job_is_submitted() -> None:
    folder = SAMPLES / "alibaba-gpu-2020"
    trace = load(*(folder / f"pai_{name}.csv" for name in ("machine_spec", "job_table", "task_table")))
    assert times(trace.pods) == {
        "a1f0-ps": (3600, 4300, None),
        "a1f0-worker-0": (3600, 4300, None),
        "a1f0-worker-1": (3600, 4300, None),
        "a2f0-tensorflow": (4000, 600, None),
        "a3f0-xcomputeworker": (5000, 50, None),
    }
    gpu = "alibabacloud.com/gpu"
    assert requests(trace)["a1f0-worker-0"] == {"cpu": "4000m", "memory": "30000Mi", f"{gpu}-milli": "500"}
    assert requests(trace)["a1f0-ps"] == {"cpu": "6000m", "memory": "30000Mi"}
    assert requests(trace)["a3f0-xcomputeworker"] == {
        "cpu": "8000m",
        "memory": "60000Mi",
        f"{gpu}-milli": "4000",
        f"{gpu}-count": "4",
    }
    worker = trace.pods[1].pod.metadata
    assert (worker.labels, worker.annotations[f"{gpu}-milli"]) == ({f"{gpu}-card-model": "V100"}, "500")
    assert offers(trace)["82e5af3cd5c4af3f56c62c54"] == quantities(
        {
            "cpu": "96",
            "memory": "512Gi",
            f"{gpu}-milli": "2k",
            f"{gpu}-count": "2",
            **PODS,
        }
    )


def test_alibaba_gpu_2020_instances_have_individual_run_times() -> None:
    trace = load(SAMPLES / "alibaba-gpu-2020" / "pai_*.csv")
    assert times(trace.pods)["a1f0-worker-p1"] == (3600, 4200, None)
    assert times(trace.pods)["a1f0-worker-p2"] == (3600, 4280, None)
    assert len(trace.pods) == 5


def test_google_borg_2019_instances_and_machines_are_loaded() -> None:
    trace = load(SAMPLES / "google-borg-2019" / "*.json")
    assert times(trace.pods) == {
        "7-0": (0, None, None),
        "8-0": (600, 90, None),
        "9-0": (620, None, None),
        "11-0": (640, 40, None),
        "12-0": (650, None, 680),
    }
    assert requests(trace)["8-0"] == {"cpu": "6400m", "memory": str(round(0.02 * 2**38))}
    assert {each.pod.metadata.name: each.pod.spec.priority for each in trace.pods}["8-0"] == 103
    assert offers(trace) == {
        "machine-101": quantities({"cpu": "32", "memory": "128Gi", **PODS}),
        "machine-102": quantities({"cpu": "64", "memory": "64Gi", **PODS}),
    }
    assert left_out(trace) == {"tasks within a reservation": "1 skipped"}


def test_google_borg_2019_constraints_become_node_affinity() -> None:
    trace = load(SAMPLES / "google-borg-2019" / "*.json")
    affinity = trace.pods[1].pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    assert required is not None
    (rule,) = required.node_selector_terms[0].match_expressions
    assert (rule.operator, rule.values) == ("Gt", ("7",))
    assert [node.metadata.labels[rule.key] for node in trace.nodes] == ["7", "9"]


def test_google_borg_2019_constraints_without_machine_attributes_are_dropped_with_a_warning() -> None:
    trace = load(SAMPLES / "google-borg-2019" / "instance_events-*.json")
    assert all(each.pod.spec.affinity is None for each in trace.pods)
    assert "constraints on machine attributes that are missing or not comparable" in left_out(trace)


def test_philly_jobs_and_machines_are_loaded() -> None:
    trace = load(SAMPLES / "philly" / "cluster_job_log", SAMPLES / "philly" / "cluster_machine_list")
    start = 61 * 86400 + 3600 + 11 * 60 + 39
    assert times(trace.pods) == {
        "application-1-1": (start, 74 + 3600, None),
        "application-1-3-0": (start + 18 * 60 + 21, None, None),
        "application-1-3-1": (start + 18 * 60 + 21, None, None),
    }
    assert requests(trace) == {
        "application-1-1": {"nvidia.com/gpu": "8"},
        "application-1-3-0": {"nvidia.com/gpu": "1"},
        "application-1-3-1": {"nvidia.com/gpu": "2"},
    }
    assert offers(trace)["m32"] == quantities({"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "2", **PODS})
    assert trace.nodes[0].metadata.labels["trace.bayplan.io/gpu-memory"] == "24GB"
    assert left_out(trace) == {"jobs without an attempt, which have no GPUs": "1 skipped"}


def test_a_philly_job_with_half_of_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster_job_log").write_text('["\\ud800"]')
    with pytest.raises(InputError, match="surrogates not allowed"):
        load(tmp_path / "cluster_job_log", SAMPLES / "philly" / "cluster_machine_list")
