"""The classic mode on the command line: simulate and explain with providers and Policy files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bayplan.cli.main import main

POLICY = """\
kind: Policy
apiVersion: v1
priorities:
- {name: MostRequestedPriority, weight: 2}
"""


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Two nodes, one of them half full, and a pod that fits on both."""

    def pod(name: str, node: str, cpu: str) -> dict[str, object]:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "2Gi"}}}
        spec: dict[str, object] = {"containers": [container]}
        if node:
            spec["nodeName"] = node
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}
        for name in ("busy", "idle")
    ]
    objects = [*nodes, pod("old", "busy", "1"), pod("new", "", "1")]
    path = tmp_path / "cluster.json"
    path.write_bytes(b"\n".join(msgspec.json.encode(each) for each in objects))
    return str(path)


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """A Policy that packs."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return str(path)


def _explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", "new", *arguments]) == 0
    return capsys.readouterr().out


def test_default_and_autoscaler_providers_choose_opposite_nodes(
    cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spread = _explained(capsys, cluster, "--mode", "classic")
    packed = _explained(capsys, cluster, "--mode", "classic", "--algorithm-provider", "ClusterAutoScalerProvider")
    assert "LeastRequestedPriority" in spread
    assert "MostRequestedPriority" not in spread
    assert "MostRequestedPriority" in packed
    assert "NodePreferAvoidPodsPriority" in spread
    assert "idle" in spread.splitlines()[0]
    assert "busy" in packed.splitlines()[0]


@pytest.mark.parametrize("option", ["--policy-config-file", "--config"])
def test_a_policy_file_selects_the_priorities(
    cluster: str, policy: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reported = _explained(capsys, cluster, "--mode", "classic", option, policy)
    assert "busy" in reported.splitlines()[0]
    assert "MostRequestedPriority" in reported
    assert "LeastRequestedPriority" not in reported


def test_explain_gives_the_same_output_for_a_classic_result_and_its_input(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "result")
    assert main(["simulate", cluster, "--mode", "classic", "--out", out]) == 0
    assert "1.16.15" in "".join(path.read_text() for path in Path(out).glob("*.json"))
    capsys.readouterr()
    assert _explained(capsys, out) == _explained(capsys, cluster, "--mode", "classic")


def _without_assumptions(text: str) -> str:
    return text.partition("Assumptions\n")[0]


def test_a_result_lists_all_failed_predicates_if_the_policy_checks_all(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, out = tmp_path / "all.yaml", str(tmp_path / "out")
    rules = [
        {"name": "CheckNodeLabelPresence", "argument": {"labelsPresence": {"labels": ["rack"], "presence": True}}},
        {"name": "CheckServiceAffinity", "argument": {"labelsPresence": {"labels": ["row"], "presence": True}}},
    ]
    document = {"kind": "Policy", "apiVersion": "v1", "alwaysCheckAllPredicates": True, "predicates": rules}
    policy.write_bytes(msgspec.json.encode(document))
    options = (cluster, "--mode", "classic", "--config", str(policy))
    assert main(["simulate", *options, "--out", out]) == 0
    capsys.readouterr()
    reported = _explained(capsys, out)
    assert _without_assumptions(reported) == _without_assumptions(_explained(capsys, *options))
    assert [f"2  {rule['name']}: " in reported for rule in rules] == [True, True]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["--mode", "old"], "--mode"),
        (["--mode", "classic", "--algorithm-provider", "Mine"], 'plugin "Mine" has not been registered'),
        (
            ["--mode", "classic", "--algorithm-provider", "DefaultProvider", "--config", "{policy}"],
            "expected an algorithm provider or a Policy",
        ),
        (["--mode", "classic", "--config", "{policy}.none"], "expected a Policy file, got no such file"),
        (["--mode", "classic", "--config", "{wrong}"], "Priority type not found for Nope"),
        (["--mode", "classic", "--feature-gates", "Nope=true"], "unrecognized feature gate: Nope"),
        (["--mode", "classic", "--plugin", "x.py"], "expected FILE.py:CLASS"),
        (
            ["--algorithm-provider", "DefaultProvider"],
            "--algorithm-provider needs --mode classic",
        ),
    ],
)
def test_invalid_classic_options_exit_with_code_2_without_a_traceback(
    cluster: str, policy: str, arguments: list[str], want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Path(policy).with_name("wrong.yaml")
    wrong.write_text(POLICY.replace("MostRequestedPriority", "Nope"))
    assert main(["simulate", cluster, *(each.format(policy=policy, wrong=wrong) for each in arguments)]) == 2
    printed = capsys.readouterr()
    assert want in printed.err
    assert "Traceback" not in printed.err
