"""Hostile patches: copies of copies, thousands of operations, lists that merge by key, and server-side apply."""

from __future__ import annotations

from tests.hostile.scenario import (
    APPLY,
    APPS,
    CORE,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    Draws,
    Plain,
    Scenario,
    delete,
    deployment,
    encoded,
    named,
    patch,
    post,
)

MAP = f"{CORE}/configmaps/seeded"
CONFIGURATION = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: hostile}
spec:
  replicas: 0
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - name: c
        image: i
        env:
"""
WORK = f"{APPS}/deployments/hostile"


def json_patches(draws: Draws) -> Scenario:
    """Return requests with JSON patches of many operations of one kind, such as copies that double a value."""
    count = draws.size(draws.one(26, 40, 10_000, 40_000))  # type: ignore[arg-type]
    kind = draws.text("copy", "nest", "insert", "append", "test", "move", "deep", "odd")
    operations: list[Plain] = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
    operations += [_operation(kind, number) for number in range(min(count, 2_000) if kind == "deep" else count)]
    if kind in ("insert", "append"):
        operations[0]["value"] = list(range(draws.size(300_000)))
    return [patch(MAP, operations, JSON_PATCH)]


def _operation(kind: str, number: int) -> Plain:
    match kind:
        case "copy":
            return {"op": "copy", "from": "/data", "path": f"/data/k{number}"}
        case "nest":
            return {"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/k{number}"}
        case "insert":
            return {"op": "add", "path": "/data/0", "value": "x"}
        case "append":
            return {"op": "add", "path": "/data/-", "value": number}
        case "test":
            return {"op": "test", "path": "", "value": {"a": [number] * 50}}
        case "move":
            return {"op": "move", "from": "/data", "path": "/data/a"}
        case "deep":
            return {"op": "add", "path": "/data" + "/a" * number, "value": {}}
    return {"op": "add", "path": ("/", "/data/~2", "/data/99999999999999999999")[number % 3]}


def merge_patches(draws: Draws) -> Scenario:
    """Return requests with merge patches that are wide or deep."""
    size = draws.size(200_000)
    return [
        patch(
            MAP,
            draws.one(
                {"data": {f"k{number}": "v" for number in range(size)}},
                {"metadata": {"annotations": {f"k{number}": "v" for number in range(size // 2)}}},
                {"metadata": {"labels": {"k" * size: "v" * size}}},
                {"data": {f"k{number}": None for number in range(size)}},
                b'{"data":' * size + b"1" + b"}" * size,
                b'{"data":' + b"[" * size + b"]" * size + b"}",
                {"metadata": {"finalizers": [f"a.b/{number}" for number in range(size // 4)]}},
                {"metadata": {"ownerReferences": [{"uid": f"{number}", "name": "x"} for number in range(size // 4)]}},
            ),
            MERGE,
        )
    ]


def strategic_patches(draws: Draws) -> Scenario:
    """Return requests with two strategic merge patches of keyed lists, with directives, orders and deletions."""
    count = draws.size(draws.one(5_000, 20_000, 30_000))  # type: ignore[arg-type]
    names = [f"n{number}" for number in range(count)]
    env = [{"name": name, "value": "x"} for name in names]
    one: list[Plain] = [{"name": "c", "image": "i"}]
    containers: list[Plain] = draws.one(  # type: ignore[assignment]
        [{"name": name, "image": "i"} for name in names],
        [{"name": "c", "image": "i", "env": env}],
        [{"name": "c", "image": "i", "ports": [{"containerPort": number % 60_000 + 1} for number in range(count)]}],
        [{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": f"/{name}"} for name in names]}],
    )
    template: Plain = {"containers": containers}
    twist = draws.whole(0, 5)
    if twist == 0:
        template["$setElementOrder/containers"] = [{"name": name} for name in reversed(names)]
    if twist == 1:
        template["containers"] = [{"name": name, "$patch": "delete"} for name in names]
    changes: Plain = {"spec": {"template": {"spec": template}}}
    if twist == 2:
        changes = {"metadata": {"finalizers": [f"a.b/{name}" for name in names]}}
    if twist == 3:
        changes = {"metadata": {"$deleteFromPrimitiveList/finalizers": names, "finalizers": names}}
    if twist == 4:
        changes = {"metadata": {"finalizers": [{"a": []}] * count}}
    return [
        post(f"{APPS}/deployments", deployment(one)),
        patch(WORK, changes, STRATEGIC),
        patch(WORK, changes, STRATEGIC),
        patch(WORK, {"metadata": {"finalizers": None}}, MERGE),
        delete(WORK),
    ]


def applied(draws: Draws) -> Scenario:
    """Return requests in which two managers apply a large configuration twice, as JSON and as YAML."""
    count = draws.size(draws.one(5_000, 25_000, 50_000))  # type: ignore[arg-type]
    env = [{"name": f"n{number if draws.whole(0, 99) else 0}", "value": "x"} for number in range(count)]
    if draws.one(True, False):
        env = [{"name": f"n{number}", "value": "x"} for number in range(count)]
    document = deployment([{"name": "c", "image": "i", "env": env}])
    body = encoded(document)
    if draws.one(True, False):
        lines = "".join(f"        - {{name: n{number}, value: x}}\n" for number in range(count // 2))
        body = (CONFIGURATION + lines).encode()
    other = encoded(deployment([{"name": "c", "image": "other", "env": env[: count // 2]}]))
    return [
        patch(f"{WORK}?fieldManager=one", body, APPLY),
        patch(f"{WORK}?fieldManager=one", body, APPLY),
        patch(f"{WORK}?fieldManager=two", other, APPLY),
        patch(f"{WORK}?fieldManager=two&force=true", other, APPLY),
        delete(WORK),
    ]


def applied_maps(draws: Draws) -> Scenario:
    """Return requests in which a large map is applied, changed by another manager, and applied again."""
    count = draws.size(60_000)
    path = f"{CORE}/configmaps/hostile"
    document = named("ConfigMap", "v1", data={f"k{number}": "v" for number in range(count)})
    half = named("ConfigMap", "v1", data={f"k{number}": "w" for number in range(count // 2)})
    return [
        patch(f"{path}?fieldManager=one", document, APPLY),
        patch(f"{path}?fieldManager=one", half, APPLY),
        patch(f"{path}?fieldManager=two", document, APPLY),
        patch(path, {"data": {f"k{number}": "u" for number in range(count)}}, MERGE),
        patch(f"{path}?fieldManager=one&force=true", document, APPLY),
        delete(path),
    ]


def broken(draws: Draws) -> Scenario:
    """Return requests whose bodies are not valid patches."""
    size = draws.size(1_000_000)
    body = draws.one(
        b"[" * size, b"{" * size, b'{"a":' * (size // 5), b"[" * size + b"]" * size, b'"' + b"\\u0000" * (size // 6), b"-" * size,
        b"9" * size, b'{"' + b"a" * size, draws.noise(size), b"\xff" * size, b'{"a":1,' * (size // 7), b"[{}," * (size // 4),
        b'{"metadata":{"labels":{' + b'"a":"b",' * (size // 8) + b'"a":"b"}}}',
    )  # fmt: skip
    assert isinstance(body, bytes)
    return [patch(MAP, body, draws.text(JSON_PATCH, MERGE, STRATEGIC, APPLY))]
