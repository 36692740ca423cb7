"""The bundled example: the documentation agrees with its manifests."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.examples import example_names, example_path

TEMPLATED = ("Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob")


def manifests() -> list[dict[str, Any]]:
    files = sorted(example_path().glob("*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each for each in manifests() if each["kind"] == kind]


def pod_template(workload: dict[str, Any]) -> dict[str, Any]:
    spec = workload["spec"]
    template: dict[str, Any] = (spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec)["template"]
    return template


def pod_specs() -> dict[str, dict[str, Any]]:
    """Pod specs by the name of the workload or pod."""
    specs = {each["metadata"]["name"]: each["spec"] for each in of_kind("Pod")}
    templated = [each for kind in TEMPLATED for each in of_kind(kind)]
    return specs | {each["metadata"]["name"]: pod_template(each)["spec"] for each in templated}


def test_the_example_has_three_zones_with_three_pools() -> None:
    nodes = [each["metadata"]["labels"] for each in of_kind("Node")]
    pools = Counter((each["topology.kubernetes.io/zone"][-1], each["example.com/pool"]) for each in nodes)
    assert pools == {(zone, pool): 1 if pool == "gpu" else 2 for zone in "abc" for pool in ("general", "memory", "gpu")}
    assert [each["kubernetes.io/hostname"] for each in nodes] == [each["metadata"]["name"] for each in of_kind("Node")]


def test_nodes_reserve_cpu_and_only_gpu_nodes_are_tainted() -> None:
    for node in of_kind("Node"):
        gpu = node["metadata"]["labels"]["example.com/pool"] == "gpu"
        assert node["status"]["allocatable"]["cpu"] != node["status"]["capacity"]["cpu"]
        assert ("taints" in node.get("spec", {})) is gpu
        assert ("nvidia.com/gpu" in node["status"]["allocatable"]) is gpu
    cordoned = [each["metadata"]["name"] for each in of_kind("Node") if each.get("spec", {}).get("unschedulable")]
    assert cordoned == ["general-c2"]


def test_the_example_has_every_workload_kind() -> None:
    kinds = {each["kind"] for each in manifests()}
    assert kinds == {*TEMPLATED, "Node", "Pod", "PriorityClass", "Namespace"}


def test_names_are_unique_and_referenced_namespaces_and_priorities_exist() -> None:
    keys = Counter((each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in manifests())
    assert [key for key, number in keys.items() if number > 1] == []
    namespaces = {each["metadata"]["name"] for each in of_kind("Namespace")}
    assert {each["metadata"]["namespace"] for each in manifests() if "namespace" in each["metadata"]} <= namespaces
    classes = {each["metadata"]["name"] for each in of_kind("PriorityClass")} | {"system-node-critical"}
    assert {spec["priorityClassName"] for spec in pod_specs().values() if "priorityClassName" in spec} <= classes


def test_selectors_match_templates_and_batch_pods_have_run_times() -> None:
    for kind in ("Deployment", "DaemonSet", "StatefulSet"):
        for each in of_kind(kind):
            assert each["spec"]["selector"]["matchLabels"].items() <= pod_template(each)["metadata"]["labels"].items()
    for each in of_kind("Job") + of_kind("CronJob"):
        assert "bayplan.io/run-time" in pod_template(each)["metadata"]["annotations"]
        assert pod_template(each)["spec"]["restartPolicy"] == "Never"
    (render,) = [each for each in of_kind("Job") if each["metadata"]["name"] == "render"]
    assert render["spec"]["completions"] > render["spec"]["parallelism"]


def test_all_containers_have_requests_or_limits() -> None:
    for spec in pod_specs().values():
        for container in spec["containers"]:
            assert container["resources"].get("requests") or container["resources"].get("limits")


def test_two_workloads_are_unschedulable_for_different_reasons() -> None:
    specs = pod_specs()
    archs = {each["metadata"]["labels"]["kubernetes.io/arch"] for each in of_kind("Node")}
    assert specs["firmware-build"]["nodeSelector"]["kubernetes.io/arch"] not in archs
    assert specs["year-in-memory"]["containers"][0]["resources"]["requests"]["memory"] == "96Gi"
    untainted = [each for each in of_kind("Node") if "taints" not in each.get("spec", {})]
    assert {each["status"]["allocatable"]["memory"] for each in untainted} == {"14660Mi", "61370Mi"}


def test_the_example_command_prints_and_copies_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example"]) == 0
    assert capsys.readouterr().out == f"{example_path()}\n"
    assert main(["example", "--copy", str(tmp_path / "mine")]) == 0
    assert sorted(each.name for each in (tmp_path / "mine").iterdir()) == sorted(
        each.name for each in example_path().iterdir()
    )
    assert main(["example", "--copy", str(tmp_path / "mine")]) == 2
    assert main(["example", "nothing"]) == 2


def test_an_unknown_example_is_refused_with_the_available_names() -> None:
    assert example_names() == ["three-zones"]
    with pytest.raises(InputError, match="expected one of three-zones, got 'x'"):
        example_path("x")
