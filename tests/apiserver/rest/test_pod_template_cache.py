"""Pods of one template: the fast path stores and returns the bytes of the normal path, and is used when possible."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.apiserver.rest import writing
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response, parse_query
from bayplan.apiserver.store.store import Store
from tests.apiserver.client import PODS, Client, Document, pod

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RANGES = "/api/v1/namespaces/default/limitranges"
NAMESPACES = "/api/v1/namespaces"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}


class Sent(NamedTuple):
    """A request."""

    method: str
    path: str
    body: bytes
    content_type: str = "application/json"
    accept: str = "application/json"


class Server:
    """An API whose uids follow from a seed; with `cached` it has the template cache."""

    def __init__(self, *, cached: bool) -> None:
        self.store = Store()
        backend = Backend(self.store, clock=lambda: 1_767_225_600.0, entropy=random.Random(1).randbytes)
        bootstrap(backend)
        self.api = Api(backend)
        if not cached:
            self.api._pod_templates.add = lambda info, sent, written: None  # type: ignore[method-assign]

    def send(self, sent: Sent) -> Response:
        """Return the answer."""
        path, _, query = sent.path.partition("?")
        headers = {"content-type": sent.content_type, "accept": sent.accept, "user-agent": "test/1"}
        answer = asyncio.run(self.api.handle(Request(sent.method, path, parse_query(query), headers, sent.body)))
        assert isinstance(answer, Response)
        return answer


def post(document: object, path: str = PODS, **more: str) -> Sent:
    body = document if isinstance(document, bytes) else msgspec.json.encode(document)
    return Sent("POST", path, body, **more)


def with_metadata(**fields: object) -> Document:
    document = pod("p")
    document["metadata"] = {"name": "p", **fields}
    return document


def with_spec(**fields: object) -> Document:
    return pod("p", lambda each: each["spec"].update(fields))  # type: ignore[attr-defined]


def with_resources(*resources: object, **fields: object) -> Document:
    """Return a pod with one container per argument, which is its `resources`; None for a container without."""
    containers = [
        {"name": f"c{index}", "image": "pause:3.10"} | ({} if each is None else {"resources": each})
        for index, each in enumerate(resources)
    ]
    return with_spec(containers=containers, **fields)


def sized(cpu: object, memory: object = "1Gi", **more: object) -> Document:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": "2", "memory": "1Gi"}, **more}


def raw(text: str) -> bytes:
    return text.replace("CONTAINERS", '"containers":[{"name":"c","image":"pause:3.10"}]').encode()


LONG_AGO = "2020-01-01T00:00:00Z"
BODIES: tuple[object, ...] = (
    pod("p"), {**pod("p"), "status": {}}, {**pod("p"), "status": {"phase": "Running"}}, {**pod("p"), "other": 1},
    {"metadata": {"name": "p"}, "spec": pod("p")["spec"]}, {**pod("p"), "kind": "Node"}, {**pod("p"), "apiVersion": "v2"},
    {**pod("p"), "kind": ""}, {**pod("p"), "metadata": None}, {**pod("p"), "spec": None},
    with_metadata(labels={"a": "1"}), with_metadata(labels={"a": "2", "b": ""}), with_metadata(labels={"a": "not a value"}),
    with_metadata(labels={"a": None}), with_metadata(labels={}), with_metadata(labels={"a": 5}),
    with_metadata(annotations={"note": "x:y"}), with_metadata(annotations={"Bad Key": "x"}),
    with_metadata(ownerReferences=[OWNER]), with_metadata(ownerReferences=[{"kind": "X"}]), with_metadata(finalizers=["a/b"]),
    with_metadata(finalizers=["odd"]), with_metadata(creationTimestamp=None), with_metadata(creationTimestamp=LONG_AGO),
    with_metadata(namespace="default"), with_metadata(namespace="kube-system"), with_metadata(namespace="other"),
    with_metadata(uid="mine"), with_metadata(resourceVersion="7"), with_metadata(generation=4), with_metadata(selfLink="/x"),
    with_metadata(deletionTimestamp=LONG_AGO), with_metadata(unknown=1), with_metadata(managedFields=[]),
    with_metadata(generateName="q-"), {**pod("p"), "metadata": {"generateName": "q-"}}, {**pod("p"), "metadata": {}},
    with_metadata(name="Not a name"), with_metadata(name="dotted.name"), with_metadata(name="n" * 64),
    with_spec(schedulingGates=[{"name": "wait"}]), with_spec(priorityClassName="usual"), with_spec(priority=5),
    with_spec(nope=1), with_spec(tolerations=[{"key": "a", "nope": 1}]), {**pod("p"), "status": {"nope": 1}},
    with_spec(restartPolicy="Perhaps"), with_spec(runtimeClassName="fast"), with_spec(nodeName="n"),
    raw('{"metadata":{"name":"p","name":"q"},"spec":{CONTAINERS}}'),
    raw('{"metadata":{"name":"p"},"spec":{"hostNetwork":false,"hostNetwork":false,CONTAINERS}}'),
    raw('{"metadata":{"name":"p"},"spec":{CONTAINERS},"status":{"phase":"Failed","phase":"Failed"}}'),
    raw('{"metadata":{"name":"p","labels":{"a\\u003ab":"1"}},"spec":{CONTAINERS}}'),
    raw('{"metadata":{"name":"p"},"metadata":{"name":"q"},"spec":{CONTAINERS}}'),
    raw('{"metadata": {"name": "p"}, "spec": {CONTAINERS}}'), raw('{"metadata":{"name":"p"},"spec":{CONTAINERS}'),
    raw('{"metadata":{"name":"\\ud800"},"spec":{CONTAINERS}}'), raw("null"), raw(""),
    with_metadata(annotations={"controller.kubernetes.io/pod-deletion-cost": "much"}),
    with_metadata(annotations={"scheduler.alpha.kubernetes.io/critical-pod": ""}),
    with_metadata(annotations={"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}),
    with_spec(volumes=[{"name": "v" * 60, "ephemeral": {"volumeClaimTemplate": {"spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}]),
)  # fmt: skip
SIZES: tuple[Document, ...] = (
    with_resources(sized("1")), with_resources(sized("1000m")), with_resources(sized("0.5")), with_resources(sized(2)),
    with_resources(sized(1.5)), with_resources(sized("2")), with_resources(sized("3")), with_resources(sized("-1")),
    with_resources(sized("some")), with_resources(sized(None)), with_resources(sized("")), with_resources(sized("0", "0")),
    with_resources(sized("1", "100m")), with_resources(sized("1", claims=[])), with_resources(sized("1", claims=None)),
    with_resources(sized("1", claims=[{"name": "c"}])), with_resources(sized("1", unknown=1)), with_resources({}),
    with_resources(None),
    with_resources({"requests": {"cpu": "1"}}), with_resources({"limits": {"cpu": "1"}}), with_resources({"requests": {}}),
    with_resources({"requests": {"memory": "1"}, "limits": {"cpu": "1", "memory": "2"}}),
    with_resources({"requests": {"cpu": "0"}}), with_resources({"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}),
    with_resources({"limits": {"hugepages-2Mi": "4Mi"}}), with_resources({"limits": {"example.com/gpu": "1"}}),
    with_resources({"limits": {"example.com/gpu": "1.5"}}), with_resources({"requests": {"example.com/gpu": "1"}}),
    with_resources({"limits": {"gpu": "1"}}), with_resources({"requests": {"Bad Key": "1"}}), with_resources([]),
    with_resources("x"),
    with_resources({"requests": ["cpu"]}), with_resources(sized("1"), sized("2")), with_resources(sized("2"), sized("1")),
    with_resources(sized("2"), sized("2")), with_resources(sized("2"), None), with_resources(None, sized("1")),
    with_resources({"requests": {"cpu": "0"}}, {"requests": {"cpu": "0"}}), with_resources(sized("1"), resources=sized("4")),
    with_resources(sized("1"), initContainers=[{"name": "i", "image": "i", "resources": {"requests": {"cpu": "3"}}}]),
    with_resources(sized("2"), initContainers=[{"name": "i", "image": "i", "resources": sized("2")}]),
)  # fmt: skip
RAW_SIZES = tuple(
    raw('{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i","resources":RESOURCES}]}}').replace(
        b"RESOURCES", each
    )
    for each in (
        b'{"requests":{"cpu":"1"}}',
        b'{"requests": {"cpu": "3" }}',
        b'{"requests":{"cpu":"1","cpu":"2"}}',
        b'{"requests":{"cpu":"1"},"requests":{"cpu":"2"}}',
        b'{"requests":{"c\\u0070u":"2"}}',
        b'{"requests":{"cpu":1e3}}',
        b'{"requests":{"cpu":"1:"}}',
    )
)
PATHS: tuple[str, ...] = (
    PODS,
    f"{PODS}?fieldManager=me",
    f"{PODS}?fieldValidation=Strict",
    f"{PODS}?fieldValidation=Ignore",
)
PATHS += (f"{PODS}?dryRun=All", "/api/v1/namespaces/kube-system/pods", "/api/v1/namespaces/gone/pods")
LIMIT = {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}
BETWEEN: tuple[Sent, ...] = (
    post({"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}, CLASSES),
    Sent("DELETE", f"{CLASSES}/usual", b""),
    post({"metadata": {"name": "r"}, "spec": LIMIT}, RANGES),
    Sent("DELETE", f"{RANGES}/r", b""),
    Sent("DELETE", f"{NAMESPACES}/default", b""),
    Sent("DELETE", f"{PODS}/p?gracePeriodSeconds=0", b""),
    Sent("DELETE", PODS, b""),
)
CREATES = st.builds(
    lambda body, path, numbered, number: post(renamed(body, number) if numbered else body, path),
    st.one_of(st.sampled_from(BODIES), st.sampled_from(SIZES)),
    st.sampled_from((*(PODS,) * 6, *PATHS)),
    st.sampled_from((True, True, True, False)),
    st.integers(0, 40),
)


def renamed(body: object, number: int) -> object:
    """Return a body with another name, so that it is not refused for its name alone."""
    if isinstance(body, bytes):
        return body.replace(b'"p"', b'"p%d"' % number)
    assert isinstance(body, dict)
    metadata = body["metadata"]
    if not isinstance(metadata, dict) or metadata.get("name") != "p":
        return body
    return {**body, "metadata": {**metadata, "name": f"p{number}"}}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(CREATES, CREATES, CREATES, st.sampled_from(BETWEEN)), max_size=25))
def test_the_template_cache_does_not_change_responses_or_the_store(requests: list[Sent]) -> None:
    cached, regular = Server(cached=True), Server(cached=False)
    templates = [post(pod(f"before-{number}")) for number in range(3)]
    for sent in (*templates, *requests):
        one, other = cached.send(sent), regular.send(sent)
        assert (one.status, one.body, one.content_type, one.headers, one.revision) == (
            other.status, other.body, other.content_type, other.headers, other.revision
        )  # fmt: skip
    kept = [
        {name: list(server.store.table(name).items()) for name in server.store.table_names()}
        for server in (cached, regular)
    ]
    assert kept[0] == kept[1]
    cached.store.check_invariants()


@pytest.mark.parametrize("path", PATHS[:2])
def test_the_template_cache_does_not_change_responses_for_different_resource_requests(path: str) -> None:
    cached, regular = Server(cached=True), Server(cached=False)
    sizes = [*SIZES, *RAW_SIZES]
    for number in range(4 * len(sizes)):
        sent = post(renamed(sizes[number % len(sizes)], number), path)
        one, other = cached.send(sent), regular.send(sent)
        assert (one.status, one.body, one.headers) == (other.status, other.body, other.headers)
    assert cached.api._pod_templates.created > 70


def test_pods_with_different_names_labels_and_sizes_share_one_template() -> None:
    server = Server(cached=True)
    for number in range(40):
        document = with_resources(sized(f"{number + 1}m"), None, sized("1", f"{number + 1}Mi"))
        document["metadata"] = {"name": f"p{number}", "labels": {"number": str(number)}}
        assert server.send(post(document)).status == 201
    assert server.api._pod_templates.created == 38
    assert len(server.api._pod_templates._templates) == 1


def test_specs_of_templates_are_cached_unless_large() -> None:
    server = Server(cached=True)
    for number in range(5):
        assert server.send(post(pod(f"p{number}"))).status == 201
    # The first two pods create the template. The third one is the first whose spec is cached.
    assert server.api._pod_templates.known_specs == 2
    large = with_spec(containers=[{"name": "c", "image": "i", "args": ["x" * 20_000]}])
    for number in range(5):
        assert server.send(post(renamed(large, number + 5))).status == 201
    assert server.api._pod_templates.known_specs == 2
    assert server.api._pod_templates.created == 6
    assert len(server.api._pod_templates._specs) == 1


def test_cached_resource_amounts_are_limited() -> None:
    server = Server(cached=True)
    for number in range(1100):
        assert server.send(post(renamed(with_resources(sized(f"{number + 1}m")), number))).status == 201
    assert len(server.api._pod_templates._amounts) <= 1024


@pytest.mark.parametrize("path", PATHS)
def test_the_template_cache_does_not_change_responses_to_repeated_bodies(path: str) -> None:
    cached, regular = Server(cached=True), Server(cached=False)
    for number in range(4 * len(BODIES)):
        sent = post(renamed(BODIES[number // 4], number), path)
        one, other = cached.send(sent), regular.send(sent)
        assert (one.status, one.body, one.headers) == (other.status, other.body, other.headers)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"spec":{CONTAINERS},"status":{"phase":"Failed","phase":"Failed"}', id="a repeated key"),
        pytest.param('"spec":{CONTAINERS,"tolerations":[{"key":"a","nope":1}]}', id="an unknown field in the spec"),
        pytest.param(
            '"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"X","nope":1}]}]}', id="in a container"
        ),
        pytest.param('"spec":{CONTAINERS},"status":{"nope":1}', id="an unknown field in the status"),
    ],
)
def test_bodies_refused_by_strict_validation_do_not_create_a_template(text: str) -> None:
    cached, regular = Server(cached=True), Server(cached=False)
    twice = '{"metadata":{"name":"p"},' + text + "}"
    for number, validation in enumerate(("Ignore", "Ignore", "Ignore", "Strict", "Warn")):
        sent = post(renamed(raw(twice), number), f"{PODS}?fieldValidation={validation}")
        one, other = cached.send(sent), regular.send(sent)
        assert (one.status, one.body, one.headers) == (other.status, other.body, other.headers)


def _nothing(client: Client) -> None:
    pass


def _class(client: Client) -> None:
    assert client.post(CLASSES, {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True}).status == 201


def _range(client: Client) -> None:
    assert client.post(RANGES, {"metadata": {"name": "r"}, "spec": LIMIT}).status == 201


@pytest.mark.parametrize(
    ("between", "want"),
    [
        pytest.param(_nothing, True, id="a template that is known"),
        pytest.param(_class, False, id="a priority class created since"),
        pytest.param(_range, False, id="limits for the containers of the namespace"),
    ],
)
def test_a_template_is_used_until_a_priority_class_or_limit_range_is_created(
    between: Callable[[Client], None], want: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    for name in ("a", "b"):
        assert client.post(PODS, pod(name)).status == 201
    between(client)
    regular: list[object] = []
    create = writing.create

    def counted(*arguments: object) -> object:
        regular.append(arguments)
        return create(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(writing, "create", counted)
    assert client.post(PODS, pod("c")).status == 201
    assert (not regular) is want


def test_the_number_of_cached_templates_is_limited() -> None:
    client = Client()
    for number in range(600):
        for twice in ("a", "b"):
            document = pod(f"{twice}-{number}", lambda each: each["spec"].update(priority=0, hostname=f"h{number}"))  # type: ignore[attr-defined]  # noqa: B023
            assert client.post(PODS, document).status == 201
    assert len(client.api._pod_templates._templates) <= 512


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param({"controller.kubernetes.io/pod-deletion-cost": "much"}, 422, id="a deletion cost"),
        pytest.param({"seccomp.security.alpha.kubernetes.io/pod": "odd"}, 422, id="a seccomp profile"),
        pytest.param({"kubernetes.io/config.mirror": "x"}, 422, id="a mirror pod"),
        pytest.param({"example.com/note": "odd"}, 201, id="an annotation that nothing reads"),
    ],
)
def test_annotations_of_kubernetes_are_validated_for_every_cached_pod(annotations: dict[str, str], want: int) -> None:
    server = Server(cached=True)
    for number in range(3):
        fine = {key: "1" if "cost" in key else "unconfined" for key in annotations if "mirror" not in key}
        assert server.send(post(renamed(with_metadata(annotations=fine), number))).status == 201
    assert server.send(post(renamed(with_metadata(annotations=annotations), 9))).status == want
