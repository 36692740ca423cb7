"""The YAML in the documentation, and the commands that read it, work as their pages say."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from bayplan.app.sources.api_source import LISTED_KINDS
from bayplan.cli.main import main
from bayplan.examples import example_path
from bayplan.objects.kinds import kind_of
from tests.project.tree import ROOT

BLOCK = re.compile(r"^ *```yaml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
TRACES = ROOT / "examples" / "traces"
ELSEWHERE = {
    "configuration": "tests/project/test_configuration_page.py",
    "messages": "tests/project/test_messages.py",
    "tutorial-ci": "tests/project/test_run_pages.py",
    "tutorial-node-group": "tests/project/test_run_pages.py",
    "tutorial-weights": "tests/project/test_weights_tutorial.py",
}
"""Pages whose YAML another test reads from the page."""
HERE = {
    "api",
    "autoscaling",
    "descheduling",
    "scenarios",
    "schedule",
    "simulator",
    "sweeps",
    "traces",
    "unblock",
    "workloads",
}


def blocks(page: str, pattern: re.Pattern[str] = BLOCK) -> list[str]:
    """Return the YAML blocks of a page."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [textwrap.dedent(block) for block in pattern.findall(text)]


def lines(page: str, start: str) -> list[str]:
    """Return the commands of a page that begin with a word, with continued lines joined."""
    shell = "\n".join(blocks(page, SHELL)).replace("\\\n", "")
    return [each for line in shell.splitlines() if (each := line.partition(" #")[0].strip()).startswith(start)]


def run(words: Sequence[str], capfd: pytest.CaptureFixture[str], want: int = 0) -> str:
    """Run a `bayplan` command; return what it prints."""
    code = main(list(words))
    done = capfd.readouterr()
    assert code == want, done.err
    return done.out


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with the files that pages name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(example_path(), tmp_path / "deploy")
    files = sorted(example_path().glob("*.yaml"))
    (tmp_path / "cluster.yaml").write_text("---\n".join(file.read_text("utf-8") for file in files), encoding="utf-8")
    return tmp_path


def test_each_page_with_yaml_has_a_test() -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md") if BLOCK.search(path.read_text(encoding="utf-8"))}
    assert pages == HERE | set(ELSEWHERE)
    assert [page for page, test in ELSEWHERE.items() if page not in (ROOT / test).read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("parts", [1, 2], ids=["the rules of cluster-autoscaler", "and consolidation"])
def test_documented_autoscaler_files_run(parts: int, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "autoscaler.yaml").write_text("".join(blocks("autoscaling")[:parts]), encoding="utf-8")
    output = run(["simulate", "cluster.yaml", "--autoscaler", "autoscaler.yaml", "--strict"], capfd)
    assert "general" in output


def test_the_documented_descheduler_policy_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (policy,) = blocks("descheduling")
    (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    output = run(["simulate", "cluster.yaml", "--descheduler", "policy.yaml", "--until", "1h", "--strict"], capfd)
    assert "(RemoveDuplicates)" in output
    assert "(LowNodeUtilization)" in output


def test_the_documented_workload_runs_with_a_trace(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (workload,) = blocks("workloads")
    (folder / "workload.yaml").write_text(workload, encoding="utf-8")
    run(["simulate", str(TRACES / "philly" / "*"), "--workload", "workload.yaml"], capfd)


def test_the_documented_trace_file_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for path in (TRACES / "google-borg-2019").glob("*.json"):
        name = path.stem if "-" in path.stem else f"{path.stem}-000000000000"
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    (trace,) = blocks("traces")
    (folder / "trace.yaml").write_text(trace.replace("nodes: 120", "nodes: 2"), encoding="utf-8")
    run(["simulate", "trace.yaml"], capfd)


def test_the_documented_gpu_sharing_command_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (command,) = lines("gpu-sharing", "bayplan simulate")
    for name in shlex.split(command)[2:4]:
        shutil.copy(TRACES / "openb" / ("nodes.csv" if "node" in name else "tasks.csv"), folder / name)
    run(shlex.split(command)[1:], capfd)


def test_the_documented_scenario_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    zones = {"topology.kubernetes.io/zone": "eu-1a"}, {"topology.kubernetes.io/zone": "eu-1b"}
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}
        for name, labels in zip("ab", zones, strict=True)
    ]
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    shop = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    }
    (folder / "scenarios").mkdir()
    (scenario,) = blocks("scenarios")
    (folder / "scenarios" / "zone.yaml").write_text(scenario, encoding="utf-8")
    (folder / "scenarios" / "nodes.yaml").write_text(yaml.safe_dump_all(nodes), encoding="utf-8")
    (folder / "scenarios" / "shop.yaml").write_text(yaml.safe_dump(shop), encoding="utf-8")
    (command,) = lines("scenarios", "bayplan test")
    words = shlex.split(command)[1:]
    words[words.index("scenarios/*.yaml")] = "scenarios/zone.yaml"
    assert "the shop loses a zone" in run(words, capfd)
    assert (folder / "results.xml").exists()


@pytest.mark.parametrize("page", ["schedule", "simulator"])
def test_documented_configurations_are_valid(page: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (text,) = blocks(page)
    (folder / "scheduler.yaml").write_text(text, encoding="utf-8")
    assert "KubeSchedulerConfiguration" in run(["config", "check", "scheduler.yaml"], capfd)


def test_the_documented_manifest_check_step_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (steps,) = blocks("api")
    command = yaml.safe_load(steps)[1]["run"].partition(" > ")[0]
    assert json.loads(run(shlex.split(command)[1:], capfd)) is not None


def test_the_documented_role_can_list_every_required_kind() -> None:
    (role,) = blocks("unblock")
    rules = yaml.safe_load(role)["rules"]
    assert all(rule["verbs"] == ["list"] for rule in rules)
    allowed = {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
    assert allowed == {(kind.group, kind.plural) for kind in map(kind_of, LISTED_KINDS)}


@pytest.mark.slow
def test_documented_sweep_and_report_commands_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (sweep,) = blocks("sweeps")
    (folder / "weights.yaml").write_text(sweep, encoding="utf-8")
    sweeps, reports = lines("sweeps", "bayplan sweep"), lines("sweeps", "bayplan report")
    (folder / "cluster.yaml").write_text((ROOT / "examples/timeline/cluster.yaml").read_text("utf-8"), encoding="utf-8")
    for command in (*sweeps, *reports):
        extra = ["--executor", "local"] if command in sweeps else []
        run([*shlex.split(command)[1:], *extra], capfd)
    assert (folder / "report.html").exists()
    query = re.findall(
        r'^duckdb -c "select (\w+), avg\((\w+)\) from \'([\w./]+)\'', "\n".join(blocks("sweeps", SHELL)), re.M
    )
    import pyarrow.parquet

    ((candidate, objective, path),) = query
    assert {candidate, objective} <= set(pyarrow.parquet.read_schema(path).names)


@pytest.mark.slow
def test_documented_report_commands_for_several_seeds_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scoring = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [scoring]}],
    }
    (folder / "packed.yaml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    (made,) = lines("reports", "mkdir")
    (folder / made.split()[-1]).mkdir()
    seeds = re.findall(r"^for seed in ([\d ]+); do$", "\n".join(blocks("reports", SHELL)), re.MULTILINE)
    for seed in seeds[0].split():
        for command in lines("reports", "bayplan simulate"):
            run(shlex.split(command.replace("$seed", seed))[1:], capfd)
    (report,) = lines("reports", "bayplan report")
    run(shlex.split(report)[1:], capfd)
    assert (folder / "report.html").exists()
