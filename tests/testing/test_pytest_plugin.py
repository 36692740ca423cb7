"""The pytest plugin, in separate test runs."""

from __future__ import annotations

import pytest

from bayplan.testing import make_node, make_pod
from bayplan.testing.manifest_cluster import ManifestCluster

pytest_plugins = ("pytester",)

NODES = "\n---\n".join(
    f"apiVersion: v1\nkind: Node\nmetadata: {{name: n{number}}}\nstatus: {{allocatable: {{cpu: '4', memory: 8Gi, pods: '9'}}}}"
    for number in (1, 2)
)
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]}
"""
HEAD = """
import pytest
from bayplan.testing import make_node, make_pod
"""


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, test: str, ini: str = "") -> pytest.RunResult:
    """Run a test file with the plugin, next to manifests of two nodes and of Deployments with 4 and 5 replicas."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name, text in (("nodes", NODES), ("four", WEB % 4), ("five", WEB % 5)):
        (pytester.path / f"{name}.yaml").write_text(text, encoding="utf-8")
    pytester.makeini(f"[pytest]\n{ini}")
    pytester.makepyfile(HEAD + test)
    return pytester.runpytest_inprocess("-p", "bayplan.testing.pytest_plugin", "--strict-markers")


PASSING = [
    (
        "a manifest that fits, and one that does not",
        "@pytest.mark.bayplan('nodes.yaml')\n"
        "def test(assert_schedulable, assert_not_schedulable):\n"
        "    assert_schedulable('four.yaml')\n"
        "    assert_not_schedulable(make_pod('p').req(cpu='5'), reason='Insufficient cpu')\n",
    ),
    (
        "assertions don't change the cluster",
        "@pytest.mark.bayplan('nodes.yaml')\n"
        "def test(assert_schedulable):\n    assert_schedulable('four.yaml')\n    assert_schedulable('four.yaml')\n",
    ),
    (
        "plugins are classes of the test, too",
        "from bayplan import PerNodePlugin\n\n"
        "class OnlyOnN2(PerNodePlugin):\n"
        "    def filter_node(self, pod, node):\n"
        "        return None if node.name == 'n2' else 'node(s) were not n2'\n\n"
        "@pytest.mark.bayplan('nodes.yaml', plugins=[OnlyOnN2])\n"
        "def test(assert_schedulable):\n"
        "    assert assert_schedulable(make_pod('p').req(cpu='1')).nodes == {'default/p': 'n2'}\n",
    ),
    (
        "what is added stays",
        "@pytest.mark.bayplan('nodes.yaml')\n"
        "def test(bayplan_cluster, assert_schedulable, assert_not_schedulable):\n"
        "    bayplan_cluster.add('four.yaml')\n"
        "    assert_not_schedulable(make_pod('p').req(cpu='1'))\n"
        "    bayplan_cluster.add(make_node('n3').capacity(cpu='4', memory='8Gi'))\n"
        "    assert assert_schedulable(make_pod('p').req(cpu='1')).nodes == {'default/p': 'n3'}\n",
    ),
    (
        "a document is an object",
        "@pytest.mark.bayplan('nodes.yaml')\n"
        "def test(assert_schedulable):\n"
        "    spec = {'containers': [{'name': 'c', 'image': 'i'}], 'nodeSelector': {'disk': 'ssd'}}\n"
        "    pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'p'}, 'spec': spec}\n"
        "    with pytest.raises(AssertionError, match='no node has the label disk=ssd'):\n"
        "        assert_schedulable(pod)\n",
    ),
    (
        "pods may preempt others, unless that is forbidden",
        "@pytest.mark.bayplan('nodes.yaml')\n"
        "def test(bayplan_cluster):\n"
        "    bayplan_cluster.add('four.yaml')\n"
        "    important = make_pod('p').req(cpu='2').priority(9)\n"
        "    assert len(bayplan_cluster.assert_schedulable(important).evicted) == 1\n"
        "    with pytest.raises(AssertionError, match='expected at most 0 evictions, got 1: shop/web-'):\n"
        "        bayplan_cluster.assert_schedulable(important, evictions=0)\n",
    ),
    (
        "a quota that refuses pods is a reason",
        "@pytest.mark.bayplan('nodes.yaml')\n"
        "def test(bayplan_cluster):\n"
        "    metadata = {'name': 'q', 'namespace': 'default'}\n"
        "    quota = {'apiVersion': 'v1', 'kind': 'ResourceQuota', 'metadata': metadata, 'spec': {'hard': {'pods': '0'}}}\n"
        "    bayplan_cluster.add(quota)\n"
        "    bayplan_cluster.assert_not_schedulable(make_pod('p').req(cpu='1'), reason='exceeded quota: q')\n",
    ),
]


@pytest.mark.parametrize("test", [pytest.param(case[1], id=case[0]) for case in PASSING])
def test_fixtures_pass_for_correct_expectations(
    test: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(pytester, monkeypatch, test).assert_outcomes(passed=1)


def test_the_configured_cluster_is_used_without_a_marker(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = "def test(assert_schedulable):\n    assert_schedulable('four.yaml')\n"
    run(pytester, monkeypatch, test, "bayplan_cluster =\n    nodes.yaml\n").assert_outcomes(passed=1)


FAILING = [
    (
        "pods that wait are explained",
        "    assert_schedulable('five.yaml')\n",
        [
            "E*AssertionError: 1 of 5 pods are not schedulable:",
            "E*shop/web-* is pending: none of 2 nodes has room: Insufficient cpu (2); nearest is n1, which lacks 2 cpu",
            "E*0/2 nodes are available: 2 Insufficient cpu. *",
        ],
    ),
    (
        "a pod that fits",
        "    assert_not_schedulable(make_pod('p').req(cpu='1'))\n",
        ["E*AssertionError: expected no pod to be schedulable, but", "E*default/p goes to n*"],
    ),
    (
        "a pod that waits for another reason",
        "    assert_not_schedulable(make_pod('p').req(cpu='5'), reason='Insufficient memory')\n",
        [
            "E*AssertionError: expected pods to be pending because of 'Insufficient memory', but",
            "E*default/p is pending: it requests 5 cpu, but the largest node offers 4",
        ],
    ),
    ("objects without pods", "    assert_schedulable(make_node('n3'))\n", ["E*these objects create no pods"]),
    ("a file that is not there", "    assert_schedulable('fuor.yaml')\n", ["E*fuor.yaml: no such file or folder*"]),
]


@pytest.mark.parametrize(("call", "lines"), [pytest.param(*case[1:], id=case[0]) for case in FAILING])
def test_a_failed_assertion_prints_the_reason(
    call: str, lines: list[str], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = f"@pytest.mark.bayplan('nodes.yaml')\ndef test(assert_schedulable, assert_not_schedulable):\n{call}"
    result = run(pytester, monkeypatch, test)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(lines)


def test_an_unknown_marker_option_is_an_error_with_a_suggestion(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(
        pytester, monkeypatch, "@pytest.mark.bayplan('nodes.yaml', confg='a.yaml')\ndef test(bayplan_cluster): ...\n"
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["E*marker bayplan: expected the options config, feature_gates, plugins, seed, got confg=; try config=..."]
    )


def test_the_pytest_plugin_imports_nothing_before_a_fixture_is_used(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        "import sys\n\ndef test():\n    assert not {'numpy', 'msgspec', 'bayplan.sim'} & set(sys.modules)\n"
    )
    result = pytester.runpytest_subprocess("-p", "bayplan.testing.pytest_plugin")
    result.assert_outcomes(passed=1)


def test_manifest_cluster_works_without_pytest() -> None:
    cluster = ManifestCluster(make_node("n").capacity(cpu="2", memory="4Gi"))
    found = cluster.outcome(make_pod("fits").req(cpu="2"), make_pod("waits").req(cpu="1"))
    assert found.nodes == {"default/fits": "n"}
    assert [each.pod for each in found.waiting] == ["default/waits"]
