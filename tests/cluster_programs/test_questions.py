"""Questions about a live cluster with 5,000 pods: each command's requests to a real kube-apiserver, and RBAC refusals.

The API server's audit log must contain only lists, and none of Secrets or ConfigMaps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from bayplan.cli.main import main
from tests.apiserver.serving import Document
from tests.cluster_programs.real_cluster import RealCluster, real_cluster
from tests.cluster_programs.test_sync import MERGE, PODS, node
from tests.project.tree import ROOT

NODES, RUNNING, WORKERS = 250, 5_000, 8
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
NARROW = {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}

COMMANDS = (
    ("explain", "default/waits"),
    ("unblock", "default/waits"),
    ("capacity", "replicaset/default/web"),
    ("nodes", "remove"),
)


def reader_rules() -> list[Document]:
    """Return the rules of the ClusterRole that docs/unblock.md shows."""
    page = (ROOT / "docs" / "unblock.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(apiVersion: rbac.*?)```", page, re.DOTALL)
    assert block is not None
    rules: list[Document] = yaml.safe_load(block[1])["rules"]
    return rules


def allow(cluster: RealCluster, user: str, rules: Sequence[Document]) -> None:
    """Let a user do what rules say, in all namespaces."""
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": user}, "rules": list(rules)}
    cluster.ask("POST", ROLES, role)
    subjects = [{"kind": "User", "name": user, "apiGroup": group}]
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": user}, "subjects": subjects}
    binding |= {"apiVersion": f"{group}/v1", "roleRef": {"kind": "ClusterRole", "name": user, "apiGroup": group}}
    cluster.ask("POST", BINDINGS, binding)


def pod(name: str, cpu: str, owned_by: str = "web", **spec: object) -> Document:
    """Return a pod of a ReplicaSet."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owned_by, "uid": owned_by, "controller": True}
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Yield a control plane with nodes, running pods, and one that waits."""
    users = ("reader", "narrow", "nobody")
    with real_cluster(tmp_path_factory.mktemp("live"), users=users) as found, ThreadPoolExecutor(WORKERS) as workers:
        allow(found, "reader", reader_rules())
        allow(found, "narrow", [NARROW])

        def add_node(number: int) -> None:
            found.ask("POST", "/api/v1/nodes", node(f"n{number}"))
            found.ask("PATCH", f"/api/v1/nodes/n{number}", {"spec": {"taints": None}}, MERGE)

        def add_pod(number: int) -> None:
            found.ask("POST", PODS, pod(f"web-{number}", "150m", nodeName=f"n{number % NODES}"))

        list(workers.map(add_node, range(NODES)))
        list(workers.map(add_pod, range(RUNNING)))
        found.ask("POST", PODS, pod("waits", "7", "large"))
        yield found


def asked(cluster: RealCluster, user: str, words: Sequence[str]) -> tuple[int, list[Document]]:
    """Run a command as a user; return its exit code and its requests to the API server."""
    before = len(cluster.requests_of(user))
    code = main([*words, "--kubeconfig", str(cluster.kubeconfig_of(user))])
    return code, cluster.requests_of(user)[before:]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_questions_send_only_list_requests_and_never_read_secrets(
    cluster: RealCluster, words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, requests = asked(cluster, "reader", words)
    printed = capsys.readouterr()
    assert code in (0, 1), printed.err
    assert "could not be read" not in printed.out
    assert {each["verb"] for each in requests} == {"list"}
    assert {each["responseStatus"]["code"] for each in requests} <= {200, 404}
    # For a kind that the server does not have, older versions of its API are requested, too.
    served = Counter(each["objectRef"]["resource"] for each in requests if each["responseStatus"]["code"] == 200)
    # 5,001 pods in pages of 500 make 11 pages.
    assert served.pop("pods") == 11
    assert not {"secrets", "configmaps"} & served.keys()
    assert set(served.values()) == {1}
    pages = sum(served.values()) + 11
    print(f"{' '.join(words)}: {len(requests)} requests, {pages} answered: {printed.out.splitlines()[0]}")


def test_kinds_forbidden_by_rbac_are_reported(cluster: RealCluster, capsys: pytest.CaptureFixture[str]) -> None:
    code, requests = asked(cluster, "narrow", ("nodes", "remove"))
    printed = capsys.readouterr().out
    assert code == 0
    assert "PodDisruptionBudget" in printed
    assert Counter(each["responseStatus"]["code"] for each in requests)[403] > 10
    assert {each["verb"] for each in requests} == {"list"}


def test_a_missing_permission_to_list_nodes_is_named_in_the_error(
    cluster: RealCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    code, requests = asked(cluster, "nobody", ("nodes", "remove"))
    error = capsys.readouterr().err
    assert code == 2
    assert 'nodes is forbidden: User "nobody" cannot list resource "nodes"' in error
    assert "kubectl auth can-i list nodes --all-namespaces" in error
    assert len(requests) == 1
