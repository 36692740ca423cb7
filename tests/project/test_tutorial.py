"""The tutorial's steps without kubectl: the test sends the API requests that kubectl would send."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.cluster_programs.tutorial import ROOT, blocks, cluster, steps

Document = dict[str, object]
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
PLURALS = {
    "Deployment": "apis/apps/v1/namespaces/default/deployments",
    "Service": "api/v1/namespaces/default/services",
    "PodDisruptionBudget": "apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "Pod": "api/v1/namespaces/default/pods",
    "Node": "api/v1/nodes",
}
PODS, WEB = PLURALS["Pod"], f"{PLURALS['Deployment']}/web"
PATIENCE = 60.0


class Session:
    """The requests that kubectl makes for each command of the tutorial."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=30)

    def ask(
        self, method: str, path: str, body: object = None, kind: str = "application/json", **query: str
    ) -> Document:
        answer = self.client.request(method, f"/{path}", params=query, json=body, headers={"Content-Type": kind})
        assert answer.status_code < 300, answer.text
        found: Document = answer.json()
        return found

    def items(self, path: str, **query: str) -> list[Document]:
        found = self.ask("GET", path, **query)["items"]
        assert isinstance(found, list)
        return found

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def run(self, command: str) -> None:
        """Do what a command does; one that the tutorial does not have is an error."""
        for pattern, method in STEPS.items():
            found = re.fullmatch(pattern, command)
            if found is not None:
                method(self, *found.groups())
                return
        pytest.fail(f"no step for {command}")

    def apply(self, file: str) -> None:
        for document in yaml.safe_load_all((ROOT / file).read_text()):
            name, path = document["metadata"]["name"], PLURALS[document["kind"]]
            self.ask("PATCH", f"{path}/{name}", document, APPLY, fieldManager="tutorial")

    def delete(self, files: str) -> None:
        for file in files.split(" -f "):
            for document in yaml.safe_load_all((ROOT / file).read_text()):
                self.ask("DELETE", f"{PLURALS[document['kind']]}/{document['metadata']['name']}")

    def rolled_out(self) -> None:
        self.until(
            lambda: at(self.ask("GET", WEB), "status.availableReplicas") == at(self.ask("GET", WEB), "spec.replicas")
        )

    def scale(self, replicas: str) -> None:
        scaled = self.ask("PATCH", f"{WEB}/scale", {"spec": {"replicas": int(replicas)}}, MERGE)
        assert at(scaled, "spec.replicas") == int(replicas)
        # Until the controller has processed the change, the status is the old one.
        self.until(lambda: at(self.ask("GET", WEB), "status.replicas") == int(replicas))

    def cordon(self, node: str, *, off: bool = False) -> None:
        self.ask("PATCH", f"{PLURALS['Node']}/{node}", {"spec": {"unschedulable": None if off else True}}, MERGE)

    def drain(self, node: str) -> None:
        self.cordon(node)
        for pod in self.items(PODS, fieldSelector=f"spec.nodeName={node}"):
            name = at(pod, "metadata.name")
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            self.ask("POST", f"{PODS}/{name}/eviction", eviction)
        self.until(lambda: not self.items(PODS, fieldSelector=f"spec.nodeName={node}"))

    def condition(self, kind: str, status: str, pod: str) -> None:
        def holds() -> bool:
            conditions = at(self.ask("GET", f"{PODS}/{pod}"), "status.conditions")
            found = conditions if isinstance(conditions, list) else []
            return any(each["type"] == kind and each["status"].lower() == (status or "true") for each in found)

        self.until(holds)

    def events(self, reason: str) -> None:
        selector = f"involvedObject.name=archive,reason={reason}"
        self.until(lambda: bool(self.items("api/v1/namespaces/default/events", fieldSelector=selector)))


def at(document: Document, path: str) -> object:
    found: object = document
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


STEPS: dict[str, Callable[..., None]] = {
    r"kubectl apply -f (\S+)": Session.apply,
    r"kubectl delete -f (.+)": Session.delete,
    r"kubectl rollout status deployment/web": Session.rolled_out,
    r"kubectl scale deployment/web --replicas=(\d+)": Session.scale,
    r"kubectl drain (\S+)": Session.drain,
    r"kubectl uncordon (\S+)": lambda session, node: session.cordon(node, off=True),
    r"kubectl wait --for=condition=(\w+)=?(\w*) pod/(\w+)": Session.condition,
    r"kubectl describe pod archive .*": lambda session: session.events("FailedScheduling"),
    r"kubectl get events --field-selector=involvedObject.name=archive,reason=(\w+)": Session.events,
    r"kubectl logs (\w+) .*": lambda session, pod: logged(session, f"{PODS}/{pod}/log"),
    r"kubectl get (nodes|pods?).*": lambda session, kind: session.items(PLURALS["Node"] if kind == "nodes" else PODS),
}


def logged(session: Session, path: str) -> None:
    answer = session.client.get(f"/{path}")
    assert answer.status_code == 200
    assert "FailedScheduling" in answer.text


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with cluster(tmp_path):
        config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
        opened = Session(config["clusters"][0]["cluster"]["server"])
        yield opened
        opened.client.close()


def test_tutorial_steps_run_without_kubectl(session: Session) -> None:
    commands = [command for block in blocks() for command, _ in steps(block)]
    assert len(commands) > 20
    for command in commands:
        session.run(command)
    session.until(lambda: not session.items(PODS))
