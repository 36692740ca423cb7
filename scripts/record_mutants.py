"""Record the responses of a real kube-apiserver to one-field mutants of valid objects (`conformance/api_mutants`).

    python scripts/record_mutants.py FOLDER --server URL#TOKEN --server URL#TOKEN

Two fresh servers (`oracle/current/realcluster/up.sh`) get the same requests. Where their responses differ, the line
marks the value as variable. The valid objects are `mutant_bases.yaml` and those of `api_objects.jsonl`. The server's
OpenAPI document has every field of every kind: the script removes and changes the fields that a base has, and adds
fields that it lacks. Half of the requests, by a hash of their ids, go to `own_shown.jsonl.gz`, the others to
`own_apart.jsonl.gz`, whose differences are counted but never looked at.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import hashlib
import http.client
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import yaml
from mutant_patches import patch_asks
from mutant_requests import NAMESPACE, Ask, subresource_asks, varied_asks
from mutations import Schema, changed_objects
from record_api import Server, differences

Document = dict[str, object]
_HERE = Path(__file__).parent
VARYING = ("uid", "creationTimestamp", "managedFields", "resourceVersion")
_MOST = {"create": 100, "update": 45, "status": 24, "varied": 40, "few": 26, "all": 110, "patch": 0, "status_patch": 0}
"""Number of requests about a base.

Objects of `api_objects.jsonl` get `few` creates, half as many updates and `all` others.
"""


class Base:
    """A valid object and its resource."""

    def __init__(self, name: str, body: Document, resource: Document, *, is_small: bool) -> None:
        self.name = name
        self.kind = str(body["kind"])
        self.status = body.pop("status", None) if not is_small else None
        self.body = body
        group_version = str(body["apiVersion"])
        base = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        where = f"{base}/namespaces/{NAMESPACE}" if resource["namespaced"] else base
        self.collection = f"{where}/{resource['name']}"
        self.path = f"{self.collection}/{body['metadata']['name']}"  # type: ignore[index]
        self.subresources: set[str] = set(resource["subresources"])  # type: ignore[call-overload]
        self.is_namespaced = bool(resource["namespaced"])
        self.is_small = is_small


def main() -> int:
    """Record the mutants; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", action="append", required=True, metavar="URL#TOKEN")
    parser.add_argument("--only", default="", metavar="KIND")
    parser.add_argument("--bases", default="", metavar="FILE", help="valid objects, instead of the usual ones")
    parser.add_argument("--seed", default="", help="chooses among the mutants [default: those that are recorded]")
    parser.add_argument(
        "--one-in", type=int, default=5, metavar="N", help="keep one request of N, by a hash [default: 5]"
    )
    parser.add_argument("--names", default="own", help="how the names of the files begin [default: own]")
    parser.add_argument(
        "--most", action="append", default=[], metavar="WHAT=N", help="requests about a base: create, status ..."
    )
    options = parser.parse_args()
    servers = [Server(each) for each in options.server]
    # The second server is some revisions ahead, so that revisions always differ.
    merge = {"Content-Type": "application/merge-patch+json", "Accept": "application/json"}
    for number in range(7):
        body = {"metadata": {"labels": {"n": str(number)}}}
        path = "/api/v1/namespaces/kube-public"
        servers[-1].send({"request": {"method": "PATCH", "path": path, "headers": merge, "body": body}})
    schema = Schema(_get(servers[0], "/openapi/v2"))
    resources = _resources(servers[0])
    found_bases = _bases(resources, options.bases)
    bases = [each for each in found_bases if not options.only or each.kind == options.only]
    for each in options.most:
        what, _, number = each.partition("=")
        _MOST[what] = int(number)
    # Another seed gives other mutants, so fields are not recorded as added only once.
    seen: set[tuple[str, str]] | None = None if options.seed else set()
    plans = [(base, list(_asks(base, schema, seen, options.seed))) for base in bases]
    answers: list[list[list[Document]]] = [[] for _ in servers]
    threads = [
        threading.Thread(target=_run, args=(server, plans, found))
        for server, found in zip(servers, answers, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shown, apart = f"{options.names}_shown", f"{options.names}_apart"
    files: dict[str, list[str]] = {shown: [], apart: []}
    for (base, asks), *runs in zip(plans, *answers, strict=True):
        for line in _lines(base, asks, runs):
            if line["op"] != "base" and int(str(line["id"])[:6], 16) % options.one_in:
                continue
            side = shown if int(str(line["id"]), 16) % 2 else apart
            sides = list(files) if line["op"] == "base" else [side]
            for each in sides:
                files[each].append(json.dumps(line, separators=(",", ":")))
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        data = gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0)
        (options.folder / f"{name}.jsonl.gz").write_bytes(data)
        print(name, len(lines), len(data))
    return 0


def _get(server: Server, path: str) -> Document:
    answer = server.send({"request": {"method": "GET", "path": path, "headers": {"Accept": "application/json"}}})[1]
    return answer["body"]  # type: ignore[return-value]


def _resources(server: Server) -> dict[tuple[str, str], Document]:
    """Return the discovery entries of resources, by apiVersion and kind."""
    groups = _get(server, "/apis")["groups"]
    versions = ["v1"] + [version["groupVersion"] for group in groups for version in group["versions"]]  # type: ignore[attr-defined]
    found: dict[tuple[str, str], Document] = {}
    for version in versions:
        listed = _get(server, f"/apis/{version}" if "/" in version else f"/api/{version}")["resources"]
        plain = {each["name"]: each for each in listed if "/" not in each["name"]}  # type: ignore[attr-defined]
        for name, each in plain.items():
            subresources = [
                other["name"].partition("/")[2]
                for other in listed
                if other["name"].startswith(f"{name}/")  # type: ignore[attr-defined]
            ]
            found[version, each["kind"]] = {**each, "subresources": subresources}
    return found


def _bases(resources: dict[tuple[str, str], Document], only: str) -> Iterator[Base]:
    small = [json.loads(line) for line in (_HERE / "api_objects.jsonl").read_text().splitlines()]
    request = next(each["object"]["spec"]["request"] for each in small if each["kind"] == "CertificateSigningRequest")
    text = (_HERE / (only or "mutant_bases.yaml")).read_text().replace("${csr}", request)
    for body in yaml.safe_load_all(text):
        name = f"{body['kind']}/{body['metadata']['name']}"
        yield Base(name, _plain(body), resources[body["apiVersion"], body["kind"]], is_small=False)
    for facts in small if not only else ():
        version = f"{facts['group']}/{facts['version']}" if facts["group"] else facts["version"]
        name = {
            "customresourcedefinitions": "gadgets.own.example.com", "ipaddresses": "10.200.0.5", "csidrivers": "own.example.com",
        }.get(facts["resource"], "small")  # fmt: skip
        body = {"apiVersion": version, "kind": facts["kind"], "metadata": {"name": name}, **facts["object"]}
        body = json.loads(json.dumps(body).replace("${namespace}", NAMESPACE))
        label = f"{facts['kind']}/small" + ("-v1" if version == "autoscaling/v1" else "")
        yield Base(label, body, resources[version, facts["kind"]], is_small=True)


def _plain(value: object) -> Document:
    """Return a YAML document as plain JSON data: dates become text, and values that share an anchor are copied."""
    return json.loads(json.dumps(value, default=str))  # type: ignore[no-any-return]


def _asks(base: Base, schema: Schema, seen: set[tuple[str, str]] | None, seed: str) -> Iterator[Ask]:
    """Yield all requests about a base; an ask with the operation ``base`` stores the base."""
    seed = f"{base.name} {seed}".strip()
    if base.is_namespaced:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        yield Ask("base", "POST", "/api/v1/namespaces", "namespace", namespace)
    most = _MOST["few"] if base.is_small else _MOST["create"]
    for mutation, body in changed_objects(schema, base.body, seed, most, seen):
        yield Ask("create", "POST", base.collection, mutation=mutation, body=body)
    yield Ask("base", "POST", base.collection, body=base.body)
    if base.status is not None:
        yield Ask("base", "PUT", f"{base.path}/status", body={**base.body, "status": base.status})
    most = _MOST["few"] // 2 if base.is_small else _MOST["update"]
    for mutation, body in changed_objects(schema, base.body, f"{seed} update", most, None):
        yield Ask("update", "PUT", base.path, mutation=mutation, body=body)
    if base.status is not None and "status" in base.subresources:
        whole = {**base.body, "status": base.status}
        for mutation, body in changed_objects(schema, whole, f"{seed} status", _MOST["status"], None, prefix="status"):
            yield Ask("status", "PUT", f"{base.path}/status", mutation=mutation, body=body)
        yield from patch_asks(schema, f"{base.path}/status", whole, seed, _MOST["status_patch"], prefix="status")
        if "approval" in base.subresources:
            for mutation, body in changed_objects(
                schema, whole, f"{seed} approval", _MOST["status"], None, prefix="status"
            ):
                yield Ask("status", "PUT", f"{base.path}/approval", mutation=mutation, body=body)
    yield from patch_asks(schema, base.path, base.body, seed, _MOST["patch"])
    yield from subresource_asks(schema, base.kind, base.path, base.body, base.subresources)
    varied = list(varied_asks(base.collection, base.path, base.body, is_small=base.is_small))
    varied.sort(key=lambda each: hashlib.sha256(f"{seed} {each.op} {each.mutation}".encode()).hexdigest())
    yield from varied[: _MOST["all" if base.is_small else "varied"]]


def _run(server: Server, plans: list[tuple[Base, list[Ask]]], found: list[list[Document]]) -> None:
    """Send all requests to a server, and append the responses to `found`."""
    for base, asks in plans:
        answers = []
        for ask in asks:
            if ask.op != "base":
                answers.append(_sent(server, ask))
                continue
            ask = copy.deepcopy(ask)
            if ask.method == "PUT":
                ask.body["metadata"]["resourceVersion"] = "${rv}"  # type: ignore[index]
            if ask.mutation == "namespace" and "rv" in server.captured:
                answers.append({"status": 0, "headers": {}, "body": ""})
                continue
            answer = server.send(
                {"request": ask.request(dry_run=False), "captures": {"rv": "/metadata/resourceVersion"}}
            )[1]
            answers.append(answer)
            if int(str(answer["status"])) >= 300:
                print(f"{base.name}: the valid object is refused: {json.dumps(answer['body'])[:600]}", file=sys.stderr)
        found.append(answers)
        _clear(server, base)


def _sent(server: Server, ask: Ask) -> Document:
    """Return the response; its status is 0 if the server closes the connection instead of responding."""
    try:
        return server.send({"request": ask.request(dry_run=ask.method != "GET")})[1]
    except (http.client.HTTPException, OSError) as problem:
        print(f"{ask.op} {ask.mutation}: {problem!r}", file=sys.stderr)
        return {"status": 0, "headers": {}, "body": ""}


def _clear(server: Server, base: Base) -> None:
    """Delete a base, including its finalizers."""
    merge = {"Content-Type": "application/merge-patch+json", "Accept": "application/json"}
    server.send({"request": {"method": "DELETE", "path": f"{base.path}?gracePeriodSeconds=0", "headers": {}}})
    body = {"metadata": {"finalizers": None}}
    server.send({"request": {"method": "PATCH", "path": base.path, "headers": merge, "body": body}})
    server.send({"request": {"method": "DELETE", "path": f"{base.path}?gracePeriodSeconds=0", "headers": {}}})


def _lines(base: Base, asks: list[Ask], runs: list[list[list[Document]]]) -> Iterator[Document]:
    """Yield a base's requests with the responses, as lines of the file."""
    for ask, *both in zip(asks, *runs, strict=True):
        line: Document = {"id": "", "kind": base.kind, "base": base.name, **ask.line()}
        line["id"] = hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()[:10]
        found = [_recorded(each, keeps_fields=ask.keeps_fields) for each in both]
        line |= found[0]
        variable = sorted(differences(found[0], found[-1]))
        if found[0]["status"] == 0 and ask.mutation != "namespace":
            continue
        if ask.mutation == "namespace":
            found = [{"status": 201}]
        if any(each.startswith("/status") for each in variable):
            print(
                f"{base.name}: the servers differ: {ask.mutation} {both[0]['status']} {both[1]['status']}",
                file=sys.stderr,
            )
            continue
        if variable:
            line["variable"] = variable
        yield line


def _recorded(answer: Document, *, keeps_fields: bool) -> Document:
    status, body = int(str(answer["status"])), answer.get("body")
    headers: Document = answer["headers"]  # type: ignore[assignment]
    found: Document = {"status": status}
    if "warning" in headers:
        found["warning"] = headers["warning"]
    if headers.get("content-type") != "application/json":
        found["content-type"] = headers.get("content-type")
    if status >= 300 and isinstance(body, dict):
        details = body.get("details") or {}
        found |= {name: body[name] for name in ("message", "reason") if name in body}
        found["causes"] = details.get("causes") or []
    elif isinstance(body, dict):
        found["object"] = bare(body, keeps_fields=keeps_fields)
    elif str(headers.get("content-type", "")).startswith("application/vnd.kubernetes.protobuf"):
        found["text"] = ""
    else:
        found["text"] = body
    return found


def bare(value: object, *, keeps_fields: bool) -> object:
    """Return a document without the metadata that differ from run to run, at every level."""
    if isinstance(value, list):
        return [bare(each, keeps_fields=keeps_fields) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: bare(each, keeps_fields=keeps_fields) for name, each in value.items()}
    metadata = found.get("metadata")
    if isinstance(metadata, dict):
        drop = [name for name in VARYING if name != "managedFields" or not keeps_fields]
        found["metadata"] = {name: each for name, each in metadata.items() if name not in drop}
    return found


if __name__ == "__main__":
    sys.exit(main())
