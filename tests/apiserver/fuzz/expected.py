"""Check the answers to generated requests, and define the objects that these requests refer to."""

from __future__ import annotations

import re

import msgspec

from tests.apiserver.client import Client, Document, pod
from tests.apiserver.fuzz.made_up import SEEDED, MadeUp

# Errors that kube-apiserver, too, answers with the code 500 (conformance/api).
INTERNAL = re.compile(
    r"resourceVersion should not be set|resourceVersion: Invalid value|unknown field|field not declared in schema|"
    r"failed to create typed patch object|failed to create manager|errors? parsing YAML|error decoding YAML|"
    r"Internal error occurred: |duplicate entries for key|no preferred addresses found|"
    r"target.name: Required value"
)


def problem_with(request: MadeUp, status: int, body: bytes) -> str:
    """Return a description of the problem with an answer, or the empty string."""
    reported = f"{request.method} {request.path}?{request.query} {request.headers} {request.body[:2000]!r}: {status} {body[:500]!r}"
    if not 200 <= status <= 599 or status in (501, 502):
        return f"no code of the API: {reported}"
    # An answer to HEAD has no body; GET of the same path has one.
    if status == 500 and request.method != "HEAD" and not INTERNAL.search(body.decode(errors="replace")):
        return f"an internal error: {reported}"
    return ""


def seeded() -> list[Document]:
    """Return objects of the kinds that most generated requests are about."""
    template: Document = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    selector: Document = {"matchLabels": {"a": "b"}}
    finite = {**template, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    bodies: list[tuple[str, str, Document]] = [
        ("v1", "Pod", {"spec": pod("x")["spec"]}),
        ("v1", "Node", {}),
        ("v1", "Namespace", {}),
        ("v1", "ConfigMap", {"data": {"a": "b"}}),
        ("v1", "Secret", {}),
        ("v1", "Service", {"spec": {"ports": [{"port": 80}]}}),
        ("v1", "ServiceAccount", {}),
        ("v1", "ResourceQuota", {"spec": {"hard": {"pods": "100000"}}}),
        ("v1", "LimitRange", {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
        ("apps/v1", "Deployment", {"spec": {"selector": selector, "template": template}}),
        ("apps/v1", "ReplicaSet", {"spec": {"selector": selector, "template": template}}),
        ("apps/v1", "StatefulSet", {"spec": {"serviceName": "s", "selector": selector, "template": template}}),
        ("apps/v1", "DaemonSet", {"spec": {"selector": selector, "template": template}}),
        ("batch/v1", "Job", {"spec": {"template": finite}}),
        ("batch/v1", "CronJob", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": finite}}}}),
        ("policy/v1", "PodDisruptionBudget", {"spec": {"minAvailable": 1, "selector": selector}}),
        ("coordination.k8s.io/v1", "Lease", {}),
        ("scheduling.k8s.io/v1", "PriorityClass", {"value": 1}),
    ]
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": SEEDED}, **body} for version, kind, body in bodies
    ]


def documents_of(client: Client) -> list[Document]:
    """Return the OpenAPI documents of all groups and versions."""
    text = client.get("/openapi/v3").body
    assert isinstance(text, str)
    index: dict[str, object] = msgspec.json.decode(text)["paths"]
    return [client.get(f"/openapi/v3/{name}").document for name in index]
