"""The command ``explain``, end to end: over a result directory and over input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.base.errors import InputError
from bayplan.cli.main import COMMANDS, main
from bayplan.examples import example_path
from bayplan.library import Cluster

PLUGIN = '''
from bayplan.framework.per_node_plugin import PerNodePlugin


class NotOnB(PerNodePlugin):
    """Keeps pods off node b, and likes node c."""

    def filter_node(self, pod, node):
        return "node(s) were b" if node.name == "b" else None

    def score_node(self, pod, node):
        return 100 if node.name == "c" else 0
'''


def node(name: str, cpu: str = "4") -> dict[str, object]:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def workload(name: str, replicas: int, cpu: str) -> dict[str, object]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def single_pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """Three nodes, a pod that fits, one that doesn't, and a Deployment of which one replica waits."""
    objects = [
        node("a"),
        node("b"),
        node("c"),
        single_pod("one", "1"),
        single_pod("huge", "5"),
        workload("web", 4, "3"),
    ]
    path = tmp_path / "cluster.json"
    path.write_bytes(b"\n".join(msgspec.json.encode(each) for each in objects))
    return str(path)


@pytest.fixture
def result(cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    out = str(tmp_path / "result")
    assert main(["simulate", cluster, "--out", out, "--seed", "4"]) == 0
    capsys.readouterr()
    return out


def test_explain_gives_the_same_output_for_a_result_and_its_input(
    cluster: str, result: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "one", result]) == 0
    from_result = capsys.readouterr().out
    assert main(["explain", "default/one", cluster, "--seed", "4"]) == 0
    assert capsys.readouterr().out == from_result
    assert from_result.startswith("default/one is on ")
    assert "Best nodes by score" in from_result


def test_explain_gives_the_same_json_for_a_result_and_its_input(
    cluster: str, result: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "huge", result, "--json"]) == 0
    first = msgspec.json.decode(capsys.readouterr().out)
    assert main(["explain", "huge", cluster, "--seed", "4", "--until", "1d", "--json"]) == 0
    second = msgspec.json.decode(capsys.readouterr().out)
    assert [each.pop("assumptions")[1][:26] for each in (first, second)] == [
        "the cluster is that of the",
        "these objects were never i",
    ]
    assert second == first
    assert first["fate"] == "pending"
    assert first["verdict"] == "default/huge is pending: it requests 5 cpu, but the largest node offers 4"
    texts = [remedy["text"] for remedy in first["detail"]["remedies"]]
    assert "add a node like a, but with 5 cpu (5 cpu, 8Gi memory)" in texts


def test_explain_node_shows_all_filters_of_one_node(result: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "huge", result, "--node", "b"]) == 0
    out = capsys.readouterr().out
    assert "NodeResourcesFit rejected b: Insufficient cpu" in out
    assert "NodeUnschedulable  passes" in out


def test_explain_lists_the_pods_of_a_workload(result: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "deployment/web", result]) == 0
    out = capsys.readouterr().out
    assert out.count("default/web-") == 4
    assert "1 of them: 0/3 nodes are available: 3 Insufficient cpu." in out
    assert main(["explain", "deployment/web", result, "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert sorted(line["fate"] for line in found["pods"]) == ["pending", "placed", "placed", "placed"]


def test_rejections_and_scores_of_custom_plugins_are_explained(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    plugin = f"{tmp_path / 'mine.py'}:NotOnB=5"
    assert main(["explain", "one", cluster, "--plugin", plugin]) == 0
    out = capsys.readouterr().out
    assert out.startswith("default/one is on c: 2 of 3 nodes fit, and it is the best of them")
    assert "1  NotOnB: node(s) were b\n" in out
    assert "c is 500 points ahead of a: NotOnB +500" in out


@pytest.fixture
def plugin_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """A result in which a custom plugin keeps the pod `two` off its only node, and the option that enables the plugin."""
    pod = single_pod("two", "1")
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "b"}
    selected = node("b")
    selected["metadata"] = {"name": "b", "labels": {"kubernetes.io/hostname": "b"}}
    path = tmp_path / "selected.json"
    path.write_bytes(b"\n".join(msgspec.json.encode(each) for each in (node("a"), selected, pod)))
    (tmp_path / "mine.py").write_text(PLUGIN)
    plugin, out = f"{tmp_path / 'mine.py'}:NotOnB=5", str(tmp_path / "with_plugin")
    assert main(["simulate", str(path), "--plugin", plugin, "--out", out]) == 0
    capsys.readouterr()
    return out, plugin


@pytest.mark.parametrize(
    "arguments", [["unblock", "two"], ["capacity", "pod/two"], ["what-if", "drain=a"], ["nodes", "remove"], ["waiting"]]
)
def test_questions_about_a_result_require_the_plugins_of_its_run(
    arguments: list[str], plugin_run: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    result, plugin = plugin_run
    assert main([*arguments, result]) == 2
    want = "expected the plugins of the run, got a result whose run had the custom plugin NotOnB=5; try --plugin FILE.py:NotOnB=5"
    assert want in capsys.readouterr().err
    assert main([*arguments, result, "--plugin", plugin.replace("=5", "=4")]) == 2
    assert want in capsys.readouterr().err
    assert main([*arguments, result, "--plugin", plugin]) in (0, 1)
    assert "fits now" not in capsys.readouterr().out


def test_explain_of_a_result_tries_changes_only_with_the_plugins_of_its_run(
    plugin_run: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    result, plugin = plugin_run
    assert main(["explain", "two", result]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "NotOnB: node(s) were b" in out
    assert "no changes were tried: the run had NotOnB=5, and a result has no plugins (--plugin FILE.py:NotOnB=5)" in out
    assert "What would help" not in out
    assert main(["explain", "none", result]) == 2
    assert "got 'none'" in capsys.readouterr().err
    assert main(["explain", "two", result, "--plugin", plugin]) == 0
    out = capsys.readouterr().out
    assert "What would help" in out
    assert "no changes were tried" not in out
    with pytest.raises(InputError, match=r"try --plugin FILE.py:NotOnB=5, or in Python plugins=\['FILE.py:NotOnB=5'\]"):
        Cluster.open(result)


def test_a_plugin_file_is_executed_once(plugin_run: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    result, plugin = plugin_run
    file = Path(plugin.rpartition(":")[0])
    file.write_text(file.read_text() + '\nprint("executed")\n')
    assert main(["explain", "two", result, "--plugin", plugin]) == 0
    out = capsys.readouterr().out
    assert "What would help" in out
    assert out.count("executed") == 1


@pytest.mark.parametrize("mode", ["current", "classic"])
def test_a_result_records_its_custom_plugins_with_weights(mode: str, cluster: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    out = tmp_path / "with_plugin"
    options = ["--mode", mode, "--plugin", f"{tmp_path / 'mine.py'}:NotOnB=5", "--out", str(out)]
    assert main(["simulate", cluster, *options]) == 0
    assert msgspec.json.decode((out / "summary.json").read_bytes())["custom_plugins"] == ["NotOnB=5"]
    assert main(["waiting", str(out), *options[:4]]) == 1


@pytest.mark.parametrize(
    ("recorded", "plugin", "want"),
    [
        (None, False, "the run had no custom plugins but those of --plugin: an older Bayplan did not record them"),
        (["NotOnB"], True, "1 of 1 pod is pending, for 1 reason."),
        (["NotOnB"], False, "got a result whose run had the custom plugin NotOnB; try --plugin FILE.py:NotOnB"),
    ],
    ids=["nothing recorded", "a name without a weight", "a missing name without a weight"],
)
def test_results_of_older_versions_without_recorded_plugins_or_weights_are_supported(
    recorded: list[str] | None,
    plugin: bool,
    want: str,
    plugin_run: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    result, option = plugin_run
    summary = Path(result, "summary.json")
    facts = msgspec.json.decode(summary.read_bytes())
    del facts["custom_plugins"]
    summary.write_bytes(msgspec.json.encode({**facts, **({} if recorded is None else {"custom_plugins": recorded})}))
    main(["waiting", result, *(["--plugin", option] if plugin else [])])
    printed = capsys.readouterr()
    assert want in " ".join((printed.out + printed.err).split())


def test_an_invalid_score_is_explained_with_its_node(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.replace("return 100 if", "return 500 if"))
    plugin = f"{tmp_path / 'mine.py'}:NotOnB=5"
    assert main(["explain", "one", cluster, "--plugin", plugin]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith(
        'default/one is pending: plugin "NotOnB" returns an invalid score 500 for node c: scores are 0 to 100 priority'
    )
    event = 'FailedScheduling applying score defaultWeights on Score plugins: plugin "NotOnB" returns an invalid'
    assert event in out
    assert out.count("invalid score") == out.count("returns an invalid") == 2
    assert "note:" not in out


def test_summary_records_add_a_note_about_missing_full_records(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "summaries")
    assert main(["simulate", cluster, "--out", out, "--records", "summary"]) == 0
    capsys.readouterr()
    assert main(["explain", "one", out]) == 0
    assert "note: this run has no full records" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["two", "{result}"], "pod: expected the name of one of 6 pods, or of a workload"),
        (["hug", "{result}", "--attempt", "9"], "--attempt of default/huge: expected one of 1, 2"),
        (["one", "{result}", "--node", "d"], "--node: expected a node that existed at this attempt, got 'd'"),
        (["one", "{result}", "{cluster}"], "source: expected a single result directory, or files only"),
        (
            ["one", "{result}", "--until", "5m", "--creation-times", "--max-pods", "9"],
            "--until, --creation-times, --max-pods: a result directory is a finished simulation, to which these options "
            "don't apply; try without them",
        ),
        (["one", "{cluster}.missing"], "cluster.json.missing"),
        (["one", "{cluster}", "--until", "soon"], "--until: expected a duration"),
    ],
    ids=[
        "no such pod",
        "no such attempt",
        "no such node",
        "both kinds",
        "options of a result",
        "no file",
        "no duration",
    ],
)
def test_invalid_explain_arguments_are_refused_in_one_line(
    arguments: list[str], want: str, cluster: str, result: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format(result=result, cluster=cluster) for word in arguments]
    assert main(["explain", *words]) == 2
    printed = capsys.readouterr()
    assert want in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)


def test_explain_of_a_result_accepts_seed_and_strict(result: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "huge", result, "--seed", "5", "--strict"]) == 0
    assert "What would help" in capsys.readouterr().out


def test_help_starts_with_the_command_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--help"]) == 0
    summary = next(command.summary for command in COMMANDS if command.name == "explain")
    assert summary in capsys.readouterr().out


def test_pods_of_the_bundled_example_are_explained_within_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "result"
    assert main(["simulate", str(example_path()), "--out", str(out), "--until", "2h"]) == 0
    capsys.readouterr()
    from bayplan.analysis.result_directory import open_result

    keys = list(dict.fromkeys(pod.key for pod in open_result(out).pods))
    assert len(keys) > 30
    for key in keys[::4]:
        assert main(["explain", key, str(out)]) == 0
        text = capsys.readouterr().out
        assert text.startswith(key)
        assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("is_run", [False, True], ids=["files", "a result"])
def test_an_abbreviated_node_is_suggested_for_a_pod_without_attempts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_run: bool
) -> None:
    gated = single_pod("gated", "1")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    objects = [node("ip-10-0-0-1.example"), node("ip-10-0-0-2.example"), gated]
    path = tmp_path / "gated.json"
    path.write_bytes(b"\n".join(msgspec.json.encode(each) for each in objects))
    source = str(path)
    if is_run:
        assert main(["simulate", source, "--until", "1m", "--records", "full", "--out", str(tmp_path / "run")]) == 0
        source = str(tmp_path / "run")
    capsys.readouterr()
    assert main(["explain", "gated", source, "--node", "ip-10-0-0"]) == 2
    message = (
        "--node: expected a node of the cluster, got 'ip-10-0-0'; try 'ip-10-0-0-1.example' or 'ip-10-0-0-2.example'"
    )
    assert message in capsys.readouterr().err
    assert main(["explain", "gated", source, "--node", "ip-10-0-0-1.example"]) == 0


def test_a_workload_without_pods_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "web.yaml").write_text(REFUSED)
    assert main(["explain", "deployment/web", str(tmp_path / "web.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    missing = "2 replicas of deployment/default/web were never created: forbidden: exceeded quota: none"
    assert lines[0].startswith(missing)
    assert main(["explain", "deployment/web", str(tmp_path / "web.yaml"), "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert found["missing"].startswith(missing)
    assert found["pods"] == []
    assert found["assumptions"]
    assert main(["unblock", "deployment/web", str(tmp_path / "web.yaml")]) == 2
    assert "a workload without pods: 2 replicas of deployment/default/web were never" in capsys.readouterr().err
    assert main(["waiting", str(tmp_path / "web.yaml")]) == 0
    assert "\n2 replicas of deployment/default/web were never created: forbidden" in capsys.readouterr().out


def test_a_short_name_never_hides_the_pods_of_a_workload_that_lacks_replicas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(REFUSED.replace('pods: "0"', 'pods: "2"').replace("replicas: 2", "replicas: 3"))
    assert main(["explain", "deployment/web", str(path)]) == 0
    assert "\n0 of 2 pods have a node, 2 are pending." in capsys.readouterr().out
    for command, name in (("explain", "web"), ("unblock", "default/web")):
        assert main([command, name, str(path)]) == 2
        assert "or 'deployment/default/web'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "kept", [pytest.param(1, id="of a workload with one pod"), pytest.param(2, id="of a workload with several pods")]
)
def test_missing_replicas_are_named_for_a_recorded_run(
    kept: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = tmp_path / "web.yaml", str(tmp_path / "run")
    path.write_text(REFUSED.replace('pods: "0"', f'pods: "{kept}"').replace("replicas: 2", "replicas: 3"))
    assert main(["simulate", str(path), "--out", result]) == 0
    capsys.readouterr()
    assert main(["explain", "deployment/web", result]) == 0
    lines = capsys.readouterr().out.splitlines()
    replicas = "2 replicas of deployment/default/web were" if kept == 1 else "1 replica of deployment/default/web was"
    assert lines[0].startswith(f"{replicas} never created: forbidden: exceeded quota: none")
    assert any(line.startswith("0 of ") for line in lines)


def test_an_attempt_of_the_only_pod_of_a_workload_that_lacks_replicas_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = tmp_path / "web.yaml", str(tmp_path / "run")
    path.write_text(REFUSED.replace('pods: "0"', 'pods: "1"'))
    assert main(["simulate", str(path), "--out", result]) == 0
    capsys.readouterr()
    assert main(["explain", "deployment/web", result, "--attempt", "1"]) == 0
    assert capsys.readouterr().out.startswith("default/web-")


def test_missing_replicas_are_named_if_one_pod_exists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    created, metadata = single_pod("web-0", "1"), {"namespace": "default", "resourceVersion": "1"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    created["metadata"] |= metadata | {"uid": "web-0", "ownerReferences": [owner]}
    replica_set: dict[str, Any] = workload("web", 2, "1") | {"kind": "ReplicaSet"}
    replica_set["metadata"] |= metadata | {"uid": "web"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": metadata | {"name": "team", "uid": "team"},
        "spec": {"hard": {"pods": "1"}},
    }
    path = tmp_path / "dump.json"
    items = [node("a"), quota, replica_set, created]
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    assert main(["explain", "replicaset/web", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("1 replica of replicaset/default/web was never created: forbidden: exceeded quota: team")
    assert "default/web-0" in text
    assert main(["explain", "web-0", str(path)]) == 0
    assert "never created" not in capsys.readouterr().out


REFUSED = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: default}
spec: {hard: {pods: "0"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
"""


def test_a_pending_pod_that_is_being_deleted_has_no_suggestions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = single_pod("p", "1")
    pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    (tmp_path / "c.json").write_bytes(b"\n".join(map(msgspec.json.encode, [node("a"), pod])))
    assert main(["explain", "p", str(tmp_path / "c.json")]) == 0
    assert capsys.readouterr().out.startswith("default/p has no node, and is being deleted\n")


@pytest.mark.parametrize("command", ["explain", "unblock"])
@pytest.mark.parametrize(
    ("priority_class", "pods", "want"),
    [
        pytest.param(
            "nope",
            "9",
            "is refused: $.spec.priorityClassName: expected the name of a PriorityClass, got 'nope'",
            id="a priority class that does not exist",
        ),
        pytest.param("", "0", "is refused: exceeded quota: q, requested: pods=1", id="a quota"),
    ],
)
def test_a_refused_pod_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, priority_class: str, pods: str, want: str
) -> None:
    pod = single_pod("p", "1")
    pod["spec"]["priorityClassName"] = priority_class
    spec = {"hard": {"pods": pods}}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": spec,
    }
    (tmp_path / "c.json").write_bytes(b"\n".join(map(msgspec.json.encode, [node("a"), quota, pod])))
    assert main([command, "p", str(tmp_path / "c.json")]) == 2
    assert f"pod default/p {want}" in capsys.readouterr().err
