"""Bad requests: recorded requests, damaged at random, always get an answer and never raise an internal exception."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import pytest

from bayplan.apiserver.codec.bodies import parse_yaml
from bayplan.apiserver.rest.decoding import LONG_YAML
from bayplan.apiserver.rest.messages import Request, Response, Stream
from tests.apiserver.client import Client

FOLDER = Path(__file__).resolve().parents[3] / "conformance" / "api"
VALUES: list[object] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**40,
    "",
    "a b",
    "../x",
    "9" * 30,
    [],
    {},
    [None],
    [[1]],
    {"a": {"b": []}},
    "é\x00",
]
TYPES = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
]
ACCEPTS = [
    "application/json",
    "application/yaml",
    "*/*",
    "x/y",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ";;q=x",
]
NAMES = [
    "watch",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "dryRun",
    "force",
    "fieldManager",
    "fieldValidation",
    "sendInitialEvents",
    "timeoutSeconds",
    "timeout",
    "gracePeriodSeconds",
    "pretty",
    "includeObject",
]
TEXTS = [
    "",
    "0",
    "1",
    "-1",
    "true",
    "abc",
    "a=b",
    "a in (b",
    "All",
    "Exact",
    "NotOlderThan",
    "99999999999999999999",
    "Strict",
    "%00",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
    "metadata.name=x",
    "Object",
]
AVOIDED = {"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "controller": True}}}]}
ANNOTATIONS: dict[str, object] = {
    "scheduler.alpha.kubernetes.io/preferAvoidPods": AVOIDED,
    "scheduler.alpha.kubernetes.io/taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
    "kubectl.kubernetes.io/last-applied-configuration": {"metadata": {"name": "x"}},
    "controller.kubernetes.io/pod-deletion-cost": 1,
}
"""Annotations that hold JSON."""
NODE: dict[str, object] = {"metadata": {"generateName": "n"}}
"""The body of a request that is sent often, because the annotations of nodes are decoded."""
STATUSES = frozenset((200, 201, 202, 301, 400, 403, 404, 405, 406, 409, 410, 415, 422))
"""The expected statuses, besides those of `ERRORS`."""
ERRORS = re.compile(
    r"failed to convert new object |failed to create typed patch object |.*: field not declared in schema"
    r"|Internal Server Error: .*: failed to create RequestInfo: |resourceVersion should not be set "
    r"|resourceVersion: Invalid value: .*: strconv.ParseUint: |strconv.ParseUint: parsing "
    r"|unknown patch type: |list element types are not identical: |merging lists cannot yet be |map: .* merge key: "
    r"|expected a |The order in patch list:|\[?target\.(kind|name): |no preferred addresses found; "
    r"|duplicate nodePort: |Non-matching dry-run options |This pod has more than one PodDisruptionBudget"
    r"|Internal error occurred: the spec replicas field |Timeout: Too large resource version: ",
    re.DOTALL,
)
"""The messages of the expected statuses 500 and 504, which upstream answers too."""


def recorded() -> list[tuple[str, str, object]]:
    """Return method, path and body of recorded requests."""
    found = []
    for path in sorted(FOLDER.glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            request = msgspec.json.decode(line)["request"]
            found.append((request["method"], request["path"], request.get("body")))
    return found


def broken(value: object, chance: random.Random) -> object:
    """Return a JSON value with something in it replaced, removed or repeated."""
    if chance.random() < 0.08:
        return chance.choice(VALUES)
    if isinstance(value, dict):
        out = {name: broken(item, chance) for name, item in value.items() if chance.random() > 0.05}
        if chance.random() < 0.1:
            out[chance.choice(["nope", "$patch", "$retainKeys", "metadata", "spec", "items"])] = chance.choice(VALUES)
        return out
    if isinstance(value, list):
        out_list = [broken(item, chance) for item in value]
        return out_list + out_list[:1] if chance.random() < 0.1 else out_list
    return value


def annotated(value: object, chance: random.Random) -> object:
    """Return an object with an annotation that holds JSON, valid or not."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict):
        return value
    name = chance.choice(sorted(ANNOTATIONS))
    text = chance.choice([json.dumps(broken(broken(ANNOTATIONS[name], chance), chance)), "9" * 5000, "[" * 5000])
    annotations = metadata.get("annotations")
    annotations = {**annotations, name: text} if isinstance(annotations, dict) else {name: text}
    return {**value, "metadata": {**metadata, "annotations": annotations}} if isinstance(value, dict) else value


def body_of(value: object, chance: random.Random) -> bytes:
    if value is None:
        return b""
    if chance.random() < (1 if value is NODE else 0.1):
        value = annotated(value, chance)
    data = value.encode() if isinstance(value, str) else msgspec.json.encode(broken(value, chance))
    if chance.random() < 0.1:
        data = data[: chance.randrange(len(data) + 1)]
    if chance.random() < 0.05:
        data = b"k8s\x00" + bytes(chance.randrange(256) for _ in range(30))
    return data


def case_of(corpus: list[tuple[str, str, object]], chance: random.Random) -> tuple[str, str, object]:
    return ("POST", "/api/v1/nodes", NODE) if chance.random() < 0.1 else chance.choice(corpus)


def request_of(case: tuple[str, str, object], chance: random.Random) -> Request:
    method, path, body = case
    plain, _, query = path.partition("?")
    segments = plain.split("/")
    if chance.random() < 0.2:
        segments[chance.randrange(len(segments))] = chance.choice(
            ["", "pods", "namespaces", "status", "x", "é", "scale"]
        )
    parameters = dict(parse_qsl(query))
    for _ in range(chance.randrange(3)):
        parameters[chance.choice(NAMES)] = chance.choice(TEXTS)
    if "watch" in parameters or "sendInitialEvents" in parameters:
        parameters["timeoutSeconds"] = "1"
    if chance.random() < 0.1:
        method = chance.choice(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"])
    content_type = chance.choice(TYPES) if method == "PATCH" or chance.random() < 0.2 else "application/json"
    headers = {"content-type": content_type, "accept": chance.choice(ACCEPTS), "user-agent": chance.choice(["x/1", ""])}
    return Request(method, "/".join(segments), parameters, headers, body_of(body, chance))


def message_of(answer: Response) -> str:
    """Return the message of an error in any form."""
    if answer.content_type.startswith("text/plain"):
        return answer.body.decode()
    status = parse_yaml(answer.body).value  # JSON is YAML too.
    return str(status["message"]) if isinstance(status, dict) else ""


@pytest.mark.parametrize("seed", [4, 11])
def test_randomly_corrupted_requests_are_answered(seed: int) -> None:
    chance = random.Random(seed)
    corpus = recorded()
    client = Client()

    async def ask(request: Request) -> None:
        answer = await client.api.handle(request)
        if isinstance(answer, Stream):
            async for _ in answer.frames:
                break
            return
        assert isinstance(answer, Response)
        if answer.status in (500, 504):
            assert ERRORS.match(message_of(answer)), answer.body
        else:
            assert answer.status in STATUSES, answer.body

    async def run() -> None:
        # Concurrently, because some requests wait for an event or for a version that never comes.
        await asyncio.gather(*(ask(request_of(case_of(corpus, chance), chance)) for _ in range(300)))

    asyncio.run(run())
    client.store.check_invariants()


@pytest.mark.parametrize(
    ("line", "status"),
    [pytest.param("  k%d: v\n", 201, id="a valid body"), pytest.param("  k%d: [\n", 400, id="an invalid body")],
)
def test_long_yaml_bodies_are_parsed_or_refused(line: str, status: int) -> None:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: long}\ndata:\n"
    body = (head + "".join(line % number for number in range(20_000))).encode()
    assert len(body) > LONG_YAML
    answer = Client().call("POST", "/api/v1/namespaces/default/configmaps", body, content_type="application/yaml")
    assert answer.status == status
    path = "/api/v1/namespaces/default/configmaps/long?fieldManager=m"
    assert Client().call("PATCH", path, body, content_type="application/apply-patch+yaml").status == status


_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("body", "content_type", "want"),
    [
        pytest.param(
            b'{"metadata":{"name":"a","name":"b","nope":1},"data":{"k":"1","k":"2"},"x":{}}', "application/json",
            'strict decoding error: duplicate field "metadata.name", unknown field "metadata.nope", '
            'duplicate field "data.k", unknown field "x"',
            id="repeated and unknown fields, in the order of the body",
        ),
        pytest.param(
            b"metadata: {name: y}\ndata: {a: 1}\n", "application/yaml",
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            id="the first error of YAML, in the order of sorted keys",
        ),
        pytest.param(
            b'{"metadata":{"name":"a","name":"b","generation":1.5e0}}', "application/json",
            "json: cannot unmarshal number 1.5e0 into Go struct field ObjectMeta.metadata.generation of type int64",
            id="a number as it was sent, although another field is repeated",
        ),
    ],
)  # fmt: skip
def test_errors_of_a_body_come_in_the_order_of_its_fields(body: bytes, content_type: str, want: str) -> None:
    answer = Client().call("POST", f"{_MAPS}?fieldValidation=Strict", body, content_type=content_type)
    assert (answer.status, str(answer.at("message")).endswith(want)) == (400, True)


def test_unknown_fields_of_the_operations_of_a_json_patch_cause_warnings() -> None:
    client = Client()
    client.post(_MAPS, {"metadata": {"name": "a"}})
    patch = [{"op": "add", "path": "/data", "value": {}, "extra": 1}]
    answer = client.call("PATCH", f"{_MAPS}/a?fieldValidation=Warn", patch, content_type="application/json-patch+json")
    assert answer.headers == [("warning", '299 - "json patch unknown field \\"[0].extra\\""')]


@pytest.mark.parametrize("number", ["1e1", "1.50", "2E+0"])
def test_a_number_in_an_error_is_shown_as_it_was_sent(number: str) -> None:
    body = f'{{"metadata":{{"name":"p"}},"spec":{{"terminationGracePeriodSeconds":{number}}}}}'.encode()
    answer = Client().call("POST", "/api/v1/namespaces/default/pods", body)
    assert f"cannot unmarshal number {number} into Go struct field PodSpec.spec" in str(answer.at("message"))


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        pytest.param(b'"1.5"', 0, id="a string is not a number"),
        pytest.param(b"1.5", 1, id="the error shows a number"),
    ],
)
def test_a_body_is_parsed_again_only_if_the_error_shows_a_number(
    seconds: bytes, want: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[object] = []
    loads = json.loads

    def counting(text: str, **options: Any) -> object:
        parsed.extend(name for name in options if name == "parse_float")
        return loads(text, **options)

    monkeypatch.setattr(json, "loads", counting)
    body = b'{"metadata":{"name":"p"},"spec":{"terminationGracePeriodSeconds":' + seconds + b"}}"
    answer = Client().call("POST", "/api/v1/namespaces/default/pods", body)
    assert (answer.status, len(parsed)) == (400, want)


def test_the_prefix_of_an_address_gets_no_suffix() -> None:
    parent = {"group": "", "resource": "services", "namespace": "default", "name": "s"}
    body = {"metadata": {"generateName": "gen-"}, "spec": {"parentRef": parent}}
    answer = Client().call("POST", "/apis/networking.k8s.io/v1/ipaddresses", body)
    assert (answer.status, answer.at("details.name")) == (422, "gen-")
