"""Requests that Schemathesis generates from Bayplan's OpenAPI documents; half of them violate the schema.

Schemathesis invents names, so its requests would all end with "not found". Therefore most requests are changed to name
existing objects, some bodies get a fitting kind, and query parameters that the documents omit (watches, pages) are
added.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.core.result import Ok

SEEDED = "seeded"
_QUERIES: dict[str, tuple[str, ...]] = {
    "watch": ("1", "true", "0", "x"),
    "limit": ("1", "0", "-1", "x", "99999999999999999999"),
    "continue": ("x", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"),
    "resourceVersion": ("0", "1", "x", "-1"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "sendInitialEvents": ("true", "x"),
    "allowWatchBookmarks": ("true",),
    "labelSelector": ("a=b", "a in (b", "!a", "a>1", "=,"),
    "fieldSelector": ("metadata.name=x", "status.phase!=x", "x=y", "=="),
    "dryRun": ("All", "x"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "fieldManager": ("m", "m" * 200),
    "force": ("true", "x"),
    "gracePeriodSeconds": ("0", "-1", "x"),
    "propagationPolicy": ("Orphan", "Foreground", "x"),
    "pretty": ("true",),
    "includeObject": ("Object", "x"),
    "timeout": ("1s", "x"),
}
_ACCEPTS = (
    "application/json", "*/*", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "*/*;q=0.1", "x",
)  # fmt: skip
_MAX_EXAMPLES = 200
_WAYS = 4


class MadeUp(NamedTuple):
    """A generated request."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def streams(self) -> bool:
        """Return whether the request might be a watch, whose answer does not end."""
        return "watch" in self.query or "/watch/" in self.path


class Source:
    """Generated requests for all operations of OpenAPI documents, one operation after the other.

    Args:
        documents: OpenAPI documents of version 3.
        number: The seed.
    """

    def __init__(self, documents: list[dict[str, Any]], number: int) -> None:
        self._operations: list[Any] = []
        self._random = random.Random(number)
        for document in documents:
            found = schemathesis.openapi.from_dict(document)
            self._operations += [each.ok() for each in found.get_all_operations() if isinstance(each, Ok)]
        self._random.shuffle(self._operations)

    def requests(self, count: int, *, most_each: int) -> Iterator[MadeUp]:
        """Yield `count` requests.

        Args:
            count: The number of requests.
            most_each: The number of generated cases of one operation before the next operation follows.
        """
        modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
        made, turn = 0, 0
        while made < count:
            operation = self._operations[turn // 2 % len(self._operations)]
            for case in self._cases(operation, modes[turn % 2], most_each):
                # Generating a case takes the most time, so each is sent in several variants, which name different
                # objects.
                for _ in range(min(_WAYS, count - made)):
                    made += 1
                    yield self._request(case)
            turn += 1

    def _cases(self, operation: Any, mode: Any, count: int) -> list[Any]:
        """Return the cases that Schemathesis generates; none if it finds no way to violate the schema."""
        found: list[Any] = []

        @seed(self._random.randrange(2**32))
        @settings(
            max_examples=min(count, _MAX_EXAMPLES),
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            deadline=None,
        )
        @given(operation.as_strategy(generation_mode=mode))
        def collect(case: Any) -> None:
            found.append(case)

        try:
            collect()
        except Unsatisfiable:
            return []
        return found

    def _request(self, case: Any) -> MadeUp:
        """Turn a case into a request; usually, the names in it are replaced by those of existing objects."""
        chance = self._random
        parameters = {str(name): str(value) for name, value in dict(case.path_parameters or {}).items()}
        if chance.random() < 0.9 and "namespace" in parameters:
            parameters["namespace"] = "default"
        if chance.random() < 0.8 and "name" in parameters:
            parameters["name"] = SEEDED
        path = case.path
        for name, value in parameters.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        query = {str(name): str(value) for name, value in dict(case.query or {}).items() if chance.random() < 0.5}
        for name in chance.sample(list(_QUERIES), chance.choice((0, 0, 1, 2, 3))):
            query[name] = chance.choice(_QUERIES[name])
        if "watch" in query or "/watch/" in path:
            query["timeoutSeconds"] = "1"
        headers = {"Accept": chance.choice(_ACCEPTS) if chance.random() < 0.5 else _ACCEPTS[0]}
        if case.media_type:
            headers["Content-Type"] = case.media_type
        return MadeUp(case.method.upper(), path, urlencode(query), headers, self._body(case))

    def _body(self, case: Any) -> bytes:
        body = case.body
        if isinstance(body, bytes):
            return body
        if isinstance(body, dict) and self._random.random() < 0.7:
            kind = case.operation.definition.raw.get("x-kubernetes-group-version-kind", {})
            version = "/".join(each for each in (kind.get("group"), kind.get("version")) if each)
            metadata = body.get("metadata")
            body = {**body, "kind": kind.get("kind"), "apiVersion": version}
            if isinstance(metadata, dict | None) and self._random.random() < 0.8:
                kept = {
                    name: item
                    for name, item in (metadata or {}).items()
                    if name not in ("namespace", "resourceVersion")
                }
                body["metadata"] = {**kept, "name": self._random.choice((SEEDED, f"made-{self._random.randrange(50)}"))}
        try:
            return json.dumps(body).encode()
        except (TypeError, ValueError):
            # The case has no body, or one that is not JSON.
            return b""
