"""Hostile objects and parameters: huge lists, keys and numbers, nested YAML aliases, selectors, schedules, protobuf."""

from __future__ import annotations

from urllib.parse import quote

from tests.hostile.scenario import (
    APPS,
    CORE,
    JSON,
    PROTOBUF,
    YAML,
    Draws,
    HostileRequest,
    Plain,
    Scenario,
    delete,
    deployment,
    encoded,
    named,
    pod,
    post,
)

PLAIN_SPEC: Plain = {"containers": [{"name": "c", "image": "i"}]}
PODS = f"{CORE}/pods"


def wide_pods(draws: Draws) -> Scenario:
    """Return the requests for pods with one list or map as long as the size limit of a request allows."""
    count = draws.size(draws.one(1_000, 10_000, 30_000))  # type: ignore[arg-type]
    names = [f"n{number}" for number in range(count)]
    term: Plain = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    expressions = [{"key": "a", "operator": "In", "values": names}]
    spread: Plain = {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    spec: Plain = draws.one(  # type: ignore[assignment]
        {"tolerations": [{"key": name, "operator": "Exists"} for name in names]},
        {"nodeSelector": dict.fromkeys(names, "x")},
        {"containers": [{"name": name, "image": "i"} for name in names]},
        {"containers": [{"name": "c", "image": "i", "env": [{"name": name} for name in names]}]},
        {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}] * count}]},
        {"containers": [{"name": "c", "image": "i", "resources": {"requests": {f"a.b/{name}": "1" for name in names}}}]},
        {"containers": [{"name": "c", "image": "i:" + "x" * count}]},
        {"initContainers": [{"name": name, "image": "i"} for name in names]},
        {"volumes": [{"name": name, "emptyDir": {}} for name in names]},
        {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names[:5_000]]},
        {"schedulingGates": [{"name": f"a.b/{name}"} for name in names]},
        {"resourceClaims": [{"name": name, "resourceClaimName": name} for name in names]},
        {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a"]} for _ in names]},
        {"topologySpreadConstraints": [{**spread, "topologyKey": name} for name in names[:3_000]]},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * (count // 10 + 1)}}},
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {**term, "labelSelector": {"matchExpressions": expressions}}]}}},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": expressions}] * draws.whole(1, 3)}}}},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * (count // 10 + 1)}}}},
    )  # fmt: skip
    return [post(PODS, {**pod(), "spec": {**PLAIN_SPEC, **spec}}), delete(f"{PODS}/hostile")]


def metadata(draws: Draws) -> Scenario:
    """Return the requests for objects with very many labels, annotations, owners, finalizers or managed fields."""
    count = draws.size(draws.one(1_000, 20_000))  # type: ignore[arg-type]
    names = [f"n{number}" for number in range(count)]
    fields: Plain = {}
    for _ in range(min(count // 10, 900)):
        fields = {"f:a": fields}
    extra: Plain = draws.one(  # type: ignore[assignment]
        {"labels": dict.fromkeys(names, "x")},
        {"labels": {"k" * count * 10: "v"}},
        {"labels": {"k": "v" * count * 10}},
        {"annotations": dict.fromkeys(names, "x")},
        {"annotations": {"a": "x" * count * 10}},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name} for name in names]},
        {"finalizers": [f"a.b/{name}" for name in names]},
        {"name": "a" * count * 10},
        {"name": "a." * count * 5 + "a"},
        {"generateName": "a" * count * 10},
        {
            "managedFields": [
                {"manager": name, "operation": "Update", "apiVersion": "v1", "fieldsV1": {}} for name in names
            ]
        },
        {"managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields}]},
        {"creationTimestamp": "9" * count},
        {"resourceVersion": "9" * count},
        {"uid": "9" * count},
        {"generation": 10 ** draws.whole(1, 400)},
    )
    document = named("ConfigMap", "v1")
    document["metadata"] = {"name": "hostile", **extra}
    return [
        post(f"{CORE}/configmaps", document),
        HostileRequest(
            "PATCH", f"{CORE}/configmaps/hostile", b'{"metadata":{"finalizers":null}}', "application/merge-patch+json"
        ),
        delete(f"{CORE}/configmaps/hostile"),
    ]


def amounts(draws: Draws) -> Scenario:
    """Return the requests for quantities, percentages and times with up to hundreds of thousands of digits."""
    digits = "9" * draws.size(draws.one(30, 5_000, 500_000))  # type: ignore[arg-type]
    amount = draws.text(
        digits, f"0.{digits}", f"1e{digits}", f"1E-{digits}", f"-{digits}Ei", f"{digits}m", f"0.{'0' * len(digits)}1", f"{digits}%",
        f"{digits}n", "1" + "0" * len(digits) + "Ki", "." * len(digits), "+" * len(digits), f"1e{draws.whole(1, 4000)}",
    )  # fmt: skip
    container: Plain = {"name": "c", "image": "i", "resources": {"requests": {"cpu": amount, "memory": amount}}}
    budget = named(
        "PodDisruptionBudget", "policy/v1", spec={"minAvailable": amount, "selector": {"matchLabels": {"a": "b"}}}
    )
    rolling: Plain = deployment([{"name": "c", "image": "i"}])
    rolling["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": amount}}  # type: ignore[index]
    node = named("Node", "v1", status={"allocatable": {"cpu": amount, "pods": amount}, "capacity": {"memory": amount}})
    quota = named("ResourceQuota", "v1", spec={"hard": {"cpu": amount}})
    ranges = named(
        "LimitRange", "v1", spec={"limits": [{"type": "Container", "max": {"cpu": amount}, "default": {"cpu": amount}}]}
    )
    whole: Plain = pod(priority=10 ** min(400, len(digits)), terminationGracePeriodSeconds=10 ** min(300, len(digits)))
    choices: list[tuple[str, Plain]] = [
        (PODS, pod(containers=[container])),
        (PODS, whole),
        (PODS, pod(overhead={"cpu": amount})),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget),
        (f"{APPS}/deployments", rolling),
        ("/api/v1/nodes", node),
        (f"{CORE}/resourcequotas", quota),
        (f"{CORE}/limitranges", ranges),
    ]
    path, document = choices[draws.whole(0, len(choices) - 1)]
    return [post(path, document), delete(f"{path}/hostile")]


def schedules(draws: Draws) -> Scenario:
    """Return the requests for cron schedules that never match, or whose fields are extremely long."""
    size = draws.size(100_000)
    minutes = ",".join(str(number % 60) for number in range(size))
    schedule = draws.text(
        "0 0 31 2 *", "0 0 30 2 1", f"{minutes} * * * *", "*/0 * * * *", f"*/{'9' * size} * * * *", "@every " + "9" * size + "h",
        "@every 1ns", "@every 0s", "TZ=" + "A/" * size + " * * * * *", "TZ=../../../etc/passwd * * * * *", "* " * size,
        "0-59/1" * size + " * * * *", "59-0 * * * *", "* * * * * *", "@" * size, "CRON_TZ=Europe/Berlin 30 2 29 2 0",
    )  # fmt: skip
    finite: Plain = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec: Plain = {"schedule": schedule, "jobTemplate": {"spec": {"template": finite}}}
    if draws.one(True, False):
        spec["startingDeadlineSeconds"] = draws.one(1, 10**9, 10**18, -1)
        spec["timeZone"] = draws.text("Local", "Europe/Berlin", "A" * size, "../../etc", "")
    path = "/apis/batch/v1/namespaces/default/cronjobs"
    return [post(path, named("CronJob", "batch/v1", spec=spec)), delete(f"{path}/hostile")]


def selectors(draws: Draws) -> Scenario:
    """Return requests whose query contains selectors of extreme length."""
    count = draws.size(5_000)
    text = draws.text(
        ",".join(f"a{number}=b" for number in range(count)),
        f"a in ({','.join(f'b{number}' for number in range(count))})",
        f"a notin ({',' * count})",
        "a in " + "(" * count,
        "!" * count,
        "a=" + "b" * count,
        "a" * count + "=b",
        ",".join(["a"] * count),
        ",".join(["a>" + "9" * 20] * (count // 10 + 1)),
        "a=b," * count,
        " " * count,
    )
    field = draws.text(
        ",".join(["metadata.name=x"] * count),
        "metadata.name=" + "x" * count,
        "\\" * count,
        "=" * count,
        ",".join(["a!=b"] * count),
    )
    query = draws.text(
        f"labelSelector={quote(text)}",
        f"fieldSelector={quote(field)}",
        f"continue={'A' * count}",
        f"resourceVersion={'9' * count}",
        f"timeoutSeconds={'9' * count}&watch=1&labelSelector={quote('!' * count)}",
        f"limit={'9' * count}",
        "a=b&" * count,
        "%41" * count,
    )
    path = draws.text(PODS, "/api/v1/nodes", "/api/v1/pods", f"{APPS}/deployments")
    return [
        HostileRequest(
            draws.text("GET", "GET", "GET", "DELETE"), f"{path}?{query}"[:60_000], accept=draws.text(JSON, "*/*")
        )
    ]


def yaml_bodies(draws: Draws) -> Scenario:
    """Return requests with YAML whose aliases expand exponentially, that nests deeply, or that is slow to read."""
    size = draws.size(draws.one(100, 20_000, 300_000))  # type: ignore[arg-type]
    laughs = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, min(size, 12))]
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hostile\n"
    merges = "".join(f"m{n}: &m{n}\n  <<: [*m{max(0, n - 1)}, *m0]\n  k{n}: v\n" for n in range(1, min(size, 3_000)))
    text = draws.text(
        head + "data:\n  " + "\n  ".join(laughs),
        head + "data:\n" + "".join(f"  k{number}: v\n" for number in range(size)),
        head + "data: " + "[" * size + "]" * size,
        head + "data: " + "{a: " * size + "}" * size,
        head + "".join(" " * depth + "a:\n" for depth in range(min(size, 2_000))),
        head + "data:\n  m0: &m0 {a: b}\n" + merges,
        head + "data: {a: |\n" + "  x\n" * size,
        head + "- " * size,
        head + "? " * size,
        head + "data:\n" + "".join(f"  k{number}: &x{number} v\n" for number in range(size // 2)),
        head + "data:\n  a: &a v\n" + "".join(f"  k{number}: *a\n" for number in range(size // 2)),
        "---\n" * size,
        "&a " * size,
        "!!str " * size,
        "!" * size,
        '"' + "\\x41" * size,
        "#" * size,
        "{" + "a: b, " * size + "}",
        head + "data: {a: " + "9" * size + "}",
        head + "data: {a: 1" + ":59" * size + "}",
        head + "data: {a: 0x" + "f" * size + "}",
        head + "data: {a: 2001-01-01T00:00:00." + "9" * size + "}",
    )
    return [
        HostileRequest("POST", f"{CORE}/configmaps", text.encode()[:3_000_000], YAML),
        delete(f"{CORE}/configmaps/hostile"),
    ]


def json_bodies(draws: Draws) -> Scenario:
    """Return requests with JSON that is deep, wide or invalid."""
    size = draws.size(draws.one(1_000, 300_000))  # type: ignore[arg-type]
    head = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hostile"},"data":'
    body = draws.one(
        head + b"[" * size + b"]" * size + b"}",
        head + b'{"a":' * size + b"1" + b"}" * size + b"}",
        head + b"{" + b",".join(b'"k%d":"v"' % number for number in range(size // 2)) + b"}}",
        head + b"{" + b",".join([b'"k":"v"'] * (size // 2)) + b"}}",
        head + b"{" + b",".join(b'"k%d":{}' % number for number in range(size // 2)) + b"}}",
        head + b'{"a":"' + b"\\ud800" * (size // 2) + b'"}}',
        head + b"9" * size + b"}",
        head + b"1e" + b"9" * size + b"}",
        head[:-8] + b",".join(b'"unknown%d":1' % number for number in range(size // 4)) + b"}",
        b"[" * size, b"{" * size, b" " * size, b"null", draws.noise(size), b"\x00" * size, b'"' * size,
    )  # fmt: skip
    assert isinstance(body, bytes)
    path = f"{CORE}/configmaps" + draws.text("", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?dryRun=All")
    return [HostileRequest("POST", path, body[:3_000_000]), delete(f"{CORE}/configmaps/hostile")]


def protobuf_bodies(draws: Draws) -> Scenario:
    """Return requests with protobuf messages that have wrong lengths, nest deeply, or repeat a field very often."""
    size = draws.size(500_000)
    nested = b""
    for _ in range(min(size, 2_000)):
        nested = b"\x0a" + _varint(len(nested)) + nested
    raw = draws.one(
        draws.noise(size), b"\x0a\xff\xff\xff\xff\x0f" + b"a" * size, b"\x0a\x00" * size, nested, b"\xff" * size, b"\x80" * size,
        b"\x12\x02\x0a\x00" * (size // 4), b"\x1a\x00" * size,
    )  # fmt: skip
    assert isinstance(raw, bytes)
    meta = b"\x0a\x02v1\x12\x03Pod"
    body = b"k8s\x00" + b"\x0a" + _varint(len(meta)) + meta + b"\x12" + _varint(len(raw)) + raw
    return [HostileRequest("POST", PODS, body, PROTOBUF), delete(f"{PODS}/hostile")]


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return out + bytes((number,))


def statuses(draws: Draws) -> Scenario:
    """Return requests to subresources: very long lists of conditions, scales, bindings, evictions."""
    count = draws.size(20_000)
    conditions = [{"type": f"a.b/{number}", "status": "True"} for number in range(count)]
    images = [{"names": [f"image{number}"], "sizeBytes": number} for number in range(count)]
    seeded = f"{PODS}/seeded"
    strategic, merge = "application/strategic-merge-patch+json", "application/merge-patch+json"
    choices: list[tuple[str, str, Plain, str]] = [
        ("PATCH", f"{seeded}/status", {"status": {"conditions": conditions}}, strategic),
        ("PATCH", f"{seeded}/status", {"status": {"conditions": conditions}}, merge),
        (
            "PATCH",
            "/api/v1/nodes/seeded/status",
            {"status": {"images": images}},
            "application/strategic-merge-patch+json",
        ),
        (
            "PATCH",
            "/api/v1/nodes/seeded/status",
            {"status": {"conditions": conditions}},
            "application/strategic-merge-patch+json",
        ),
        ("PATCH", f"{APPS}/deployments/seeded/scale", {"spec": {"replicas": 10**30}}, merge),
        ("POST", f"{seeded}/binding", {"target": {"kind": "Node", "name": "x" * count}}, JSON),
        ("POST", f"{seeded}/eviction", {"deleteOptions": {"preconditions": {"uid": "x" * count}}}, JSON),
        ("PUT", "/api/v1/namespaces/seeded/finalize", {"spec": {"finalizers": [f"f{n}" for n in range(count)]}}, JSON),
    ]
    method, path, document, content_type = choices[draws.whole(0, len(choices) - 1)]
    undo = b'{"status":{"conditions":null,"images":null}}'
    return [
        HostileRequest(method, path, encoded(document), content_type),
        HostileRequest("PATCH", path, undo, merge),
    ]


def headers(draws: Draws) -> Scenario:
    """Return requests whose Accept headers and content types are long lists."""
    count = draws.size(3_000)
    accept = draws.text(
        ",".join(["application/json;q=0.1"] * count), "," * count, ";" * count,
        "application/json;as=Table;v=v1;g=meta.k8s.io," * (count // 20),
        "a" * count, "*/*;" + "q=0." + "1" * count,
    )[:60_000]  # fmt: skip
    path = draws.text(PODS, "/openapi/v2", "/apis", "/api/v1", "/version", f"{PODS}/seeded")
    return [HostileRequest("GET", path, accept=accept)]
