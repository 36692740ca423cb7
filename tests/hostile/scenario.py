"""Hostile scenarios: requests that a user sends to make the server compute for long or use much memory."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Plain: TypeAlias = "dict[str, object]"

JSON = "application/json"
YAML = "application/yaml"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

CORE = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


class HostileRequest(NamedTuple):
    """One request of a scenario."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON


Scenario: TypeAlias = "list[HostileRequest]"


class Draws:
    """The random choices of one scenario.

    Args:
        seed: The seed of the scenario.
        scale: 1 for the sizes that the API's limit of 3 MB allows, a smaller number for a quick run.
    """

    def __init__(self, seed: str, scale: float) -> None:
        self._random = random.Random(seed)
        self._scale = scale

    def one(self, *choices: object) -> object:
        """Return one of the choices."""
        return self._random.choice(choices)

    def text(self, *choices: str) -> str:
        """Return one of the texts."""
        return self._random.choice(choices)

    def size(self, largest: int) -> int:
        """Return a random size of at most `largest` times the scale; half of the sizes are that maximum."""
        most = max(1, int(largest * self._scale))
        return most if self._random.random() < 0.5 else self._random.randint(1, most)

    def whole(self, least: int, most: int) -> int:
        """Return a random integer from `least` to `most`."""
        return self._random.randint(least, most)

    def noise(self, size: int) -> bytes:
        """Return random bytes."""
        return self._random.randbytes(size)


Family: TypeAlias = Callable[[Draws], Scenario]


def encoded(document: object) -> bytes:
    """Return a document as compact JSON."""
    return json.dumps(document, separators=(",", ":")).encode()


def post(path: str, document: object) -> HostileRequest:
    """Return a request that creates an object."""
    return HostileRequest("POST", path, encoded(document))


def patch(path: str, document: object, content_type: str) -> HostileRequest:
    """Return a patch request; `document` may also be raw bytes."""
    return HostileRequest("PATCH", path, document if isinstance(document, bytes) else encoded(document), content_type)


def delete(path: str) -> HostileRequest:
    """Return a request that deletes an object without a grace period."""
    return HostileRequest("DELETE", path + "?gracePeriodSeconds=0")


def named(kind: str, version: str, name: str = "hostile", **parts: object) -> Plain:
    """Return a document of an object with a kind, an API version and a name."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **parts}


def pod(name: str = "hostile", **spec: object) -> Plain:
    """Return a pod with one container."""
    return named("Pod", "v1", name, spec={"containers": [{"name": "c", "image": "i"}], **spec})


def deployment(containers: list[Plain], name: str = "hostile") -> Plain:
    """Return a Deployment with 0 replicas."""
    template: Plain = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    spec: Plain = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return named("Deployment", "apps/v1", name, spec=spec)


def definition(schema: Plain) -> Plain:
    """Return a CustomResourceDefinition of widgets with a schema for their spec."""
    whole: Plain = {"type": "object", "properties": {"spec": schema}}
    version: Plain = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    spec: Plain = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [version],
    }
    return named("CustomResourceDefinition", "apiextensions.k8s.io/v1", "widgets.example.com", spec=spec)


def widget(spec: object) -> Plain:
    """Return a widget with this spec."""
    return named("Widget", "example.com/v1", spec=spec)
