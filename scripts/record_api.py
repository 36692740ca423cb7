"""Record exchanges with a real kube-apiserver, in the format of `conformance/api`.

    python scripts/record_api.py FOLDER [--only NAME] --server URL#TOKEN --server URL#TOKEN

Two fresh servers (`oracle/current/realcluster/up.sh`) get the same requests. Where their responses differ, the file
marks the value as variable. Each object of `api_objects.jsonl` is created, changed and deleted with all requests that
clients use (`own_kinds`). The families of `api_families.jsonl` contain parameters, selectors, media types,
warnings and admission, and those of `api_families_exchanges.jsonl` all subjects of the recordings in new combinations.
"""

from __future__ import annotations

import argparse
import base64
import concurrent.futures
import gzip
import http.client
import json
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

Document = dict[str, object]
_FAMILIES = ("api_families.jsonl", "api_families_admission.jsonl")
_OBJECTS = Path(__file__).with_name("api_objects.jsonl")
"""A small valid object of every stored kind, except alpha and beta groups and APIService."""
_HEADERS = ("content-type", "warning", "retry-after", "allow", "etag")
JSON_TYPE = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def kind_scenario(facts: Document) -> list[Document]:
    """Return the requests of an object's life, from creation to deletion, as exchanges without responses."""
    group, version, resource, namespaced, kind, rest = facts.values()
    scenario = f"own_kinds/{resource}" + (f"-{version}" if version != "v1" or group == "autoscaling" else "")
    namespace = f"t-{scenario.partition('/')[2]}"
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    where = f"{base}/namespaces/{namespace}/{resource}" if namespaced else f"{base}/{resource}"
    name = {
        "customresourcedefinitions": "gadgets.own.example.com", "ipaddresses": "10.200.0.5", "csidrivers": "own.example.com",
    }.get(resource, f"own-{resource}" if not namespaced else "web")  # fmt: skip
    body = json.loads(
        json.dumps(
            {
                "apiVersion": base.partition("/")[2].partition("/")[2] if group else version,
                "kind": kind,
                "metadata": {"name": name, "labels": {"own": resource}},
                **rest,
            }
        ).replace("${namespace}", namespace)
    )
    asks = (
        [ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})]
        if namespaced
        else []
    )
    asks += _life(where, name, resource, body)
    return numbered(scenario, asks)


def _life(where: str, name: str, resource: str, body: Document) -> list[Document]:
    """Return all requests that clients send about an object and its collection."""
    kind, metadata = body["kind"], {"name": name, "labels": {"own": resource}}
    one = f"{where}/{name}"
    mine = f"{where}?labelSelector=own%3D{resource}"
    label = {"metadata": {"labels": {"tier": "x"}}}
    asks = [
        ask("POST", f"{where}?dryRun=All", body),
        ask("POST", where, body, captures={"rv": "/metadata/resourceVersion", "uid": "/metadata/uid"}),
        ask("POST", where, body),
        ask("GET", one),
        ask("GET", one, accept=TABLE),
        ask("GET", mine, accept=TABLE),
        ask("GET", one, accept=METADATA),
        ask("GET", mine, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        ask("GET", one, accept="application/yaml"),
        ask("GET", mine),
        ask("GET", f"{where}?fieldSelector=metadata.name%3D{name}"),
        ask("GET", f"{where}?fieldSelector=spec.nope%3Dx"),
        ask("GET", f"{where}?labelSelector=a%20in%20b"),
        ask("PATCH", one, label, kind=MERGE),
        ask("PATCH", f"{one}?dryRun=All", label | {"nope": 1}, kind=STRATEGIC),
        ask("PATCH", f"{one}?fieldValidation=Strict", label | {"nope": 1}, kind=MERGE),
        ask("PATCH", one, [{"op": "test", "path": "/metadata/name", "value": "no"}], kind=JSON_PATCH),
        ask("PATCH", one, [{"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}}], kind=JSON_PATCH),
        ask("PATCH", one, label, kind=JSON_TYPE),
        ask(
            "PATCH",
            f"{one}?fieldManager=own",
            {"apiVersion": body["apiVersion"], "kind": kind, "metadata": {"name": name, "labels": {"applied": "yes"}}},
            kind=APPLY,
        ),
        ask("PATCH", one, {"apiVersion": body["apiVersion"], "kind": kind, "metadata": {"name": name}}, kind=APPLY),
        ask("PUT", f"{one}?dryRun=All", body),
        ask("PUT", one, {**body, "metadata": {**metadata, "resourceVersion": "1"}}),
        ask("PUT", one, {**body, "metadata": {**metadata, "name": "other"}}),
        ask("PUT", f"{where}/absent", {**body, "metadata": {"name": "absent", "resourceVersion": "7"}}),
        ask("GET", f"{one}/status"),
        ask("PATCH", f"{one}/status", {"metadata": {"annotations": {"s": "t"}}}, kind=MERGE),
        ask("GET", f"{one}/scale"),
        ask("PATCH", f"{one}/scale", {"spec": {"replicas": 3}}, kind=MERGE),
        ask("POST", f"{where}?fieldValidation=Strict&dryRun=All", {**body, "metadata": {"name": "strict"}, "nope": 1}),
        ask("POST", f"{where}?dryRun=All", {**body, "metadata": {"generateName": "gen-", "resourceVersion": "5"}}),
        ask("POST", f"{where}?dryRun=All", {**body, "kind": "Nope"}),
        ask("POST", f"{where}?dryRun=Some", body),
        ask("DELETE", one, {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}),
        ask("DELETE", one, {"preconditions": {"resourceVersion": "1"}}),
        ask("DELETE", f"{one}?dryRun=All"),
        ask("DELETE", f"{one}?propagationPolicy=Nope"),
        ask("DELETE", f"{one}?propagationPolicy=Background"),
        ask("GET", one),
        ask("DELETE", one),
        ask("PATCH", one, label, kind=MERGE),
    ]
    if resource != "namespaces":
        asks += [ask("POST", where, body), ask("DELETE", f"{where}?labelSelector=own%3D{resource}"), ask("GET", mine)]
    return asks


def ask(
    method: str,
    path: str,
    body: object = None,
    *,
    kind: str = JSON_TYPE,
    accept: str = JSON_TYPE,
    captures: Document | None = None,
    note: str = "",
    **more: object,
) -> Document:
    """Return one request as an exchange without a response."""
    headers = {"Accept": accept} | ({"Content-Type": kind} if body is not None else {})
    request: Document = {"method": method, "path": path, "headers": headers}
    if body is not None:
        request["body"] = body
    found: Document = {
        "note": note or f"{method} {path.partition('?')[0].rpartition('/')[2]}",
        "request": request,
        **more,
    }
    if captures:
        found["captures"] = captures
    return found


def numbered(scenario: str, asks: list[Document]) -> list[Document]:
    """Return the exchanges with ids."""
    joint = "-" if "/" in scenario else "/"
    return [{"id": f"{scenario}{joint}{index:03}", **each} for index, each in enumerate(asks)]


class Server:
    """A connection to a kube-apiserver."""

    def __init__(self, address: str) -> None:
        url, _, self._token = address.rpartition("#")
        self._host = urlsplit(url).netloc
        self._connection: http.client.HTTPSConnection | None = None
        self.captured: dict[str, str] = {}

    def send(self, exchange: Document) -> tuple[Document, Document]:
        """Send the request of an exchange; return it as it was sent, and the response."""
        request = dict(exchange["request"])  # type: ignore[call-overload]
        path = self._filled(str(request["path"]))
        body = request.get("body")
        data = None if body is None else self._filled(body if isinstance(body, str) else json.dumps(body)).encode()
        headers = {
            "User-Agent": "conformance/1.0",
            **request.get("headers", {}),
            "Authorization": f"Bearer {self._token}",
        }
        for attempt in range(2):
            if self._connection is None:
                self._connection = http.client.HTTPSConnection(self._host, context=ssl._create_unverified_context())
            try:
                self._connection.request(str(request["method"]), path, body=data, headers=headers)
                answer = self._connection.getresponse()
                raw = answer.read()
                break
            except (http.client.HTTPException, OSError):
                self._connection = None
                if attempt:
                    raise
        response: Document = {"status": answer.status}
        found = {name.lower(): value for name, value in answer.getheaders()}
        warnings = [value for name, value in answer.getheaders() if name.lower() == "warning"]
        if warnings:
            found["warning"] = ", ".join(warnings)
        response["headers"] = {name: found[name] for name in _HEADERS if name in found}
        text = raw.decode(errors="replace")
        if found.get("content-type", "").startswith("application/vnd.kubernetes.protobuf"):
            response["base64"] = base64.b64encode(raw).decode()
        elif "watch=" in path and answer.status == 200:
            response["stream"] = [json.loads(line) for line in text.splitlines() if line]
        elif found.get("content-type", "").startswith("application/json") and raw:
            response["body"] = json.loads(raw)
        else:
            response["body"] = text
        for name, pointer in exchange.get("captures", {}).items():  # type: ignore[attr-defined]
            self.captured[name] = str(at(response.get("body"), pointer))
        return request, response

    def alongside(self) -> Server:
        """Return another connection to the server, with the values captured so far."""
        other = Server(f"https://{self._host}#{self._token}")
        other.captured.update(self.captured)
        return other

    def compact(self, etcd: str, restart: str) -> None:
        """Compact etcd at its newest version, run the command that restarts the API server, and wait until it is ready.

        Args:
            etcd: the client URL of etcd.
            restart: a shell command.
        """
        newest = self._etcd(etcd, "kv/range", {"key": "AA=="})["header"]["revision"]  # type: ignore[index]
        self._etcd(etcd, "kv/compaction", {"revision": newest, "physical": True})
        subprocess.run(restart, shell=True, check=True)
        self._connection = None
        for _ in range(600):
            try:
                if self.send(ask("GET", "/readyz"))[1]["status"] == 200:
                    return
            except OSError:
                self._connection = None
            time.sleep(0.2)
        raise TimeoutError("the API server did not restart")

    @staticmethod
    def _etcd(address: str, name: str, body: Document) -> Document:
        connection = http.client.HTTPConnection(urlsplit(address).netloc)
        connection.request("POST", f"/v3/{name}", body=json.dumps(body))
        found: Document = json.loads(connection.getresponse().read())
        return found

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda match: self.captured.get(match[1], match[0]), text)


def at(document: object, pointer: str) -> object:
    """Return the value that a JSON pointer refers to."""
    for token in pointer.split("/")[1:]:
        document = document[int(token)] if isinstance(document, list) else document.get(token, "")  # type: ignore[attr-defined]
    return document


def differences(one: object, two: object, path: str = "") -> Iterator[str]:
    """Yield JSON pointers to the values that differ."""
    if isinstance(one, dict) and isinstance(two, dict):
        for name in one.keys() | two.keys():
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            yield from differences(one.get(name), two.get(name), f"{path}/{escaped}")
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for index, (left, right) in enumerate(zip(one, two, strict=True)):
            yield from differences(left, right, f"{path}/{index}")
    elif one != two:
        yield path


Exchanged = tuple[Document, Document]
"""A request as it was sent, and its response."""


def recorded(
    scenario: list[Document], servers: list[Server], compaction: list[tuple[str, str]]
) -> list[list[Exchanged]]:
    """Send a scenario to all servers and return, for each server, its exchanges in order.

    Args:
        scenario: the exchanges; ``pause`` (seconds), ``background`` and ``compact`` determine how each is sent.
        servers: the servers.
        compaction: the URL of etcd and the restart command of each server.
    """
    runs: list[list[Exchanged | concurrent.futures.Future[Exchanged]]] = [[] for _ in servers]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for each in scenario:
            # Admission plugins see some objects through caches, slightly later.
            time.sleep(int(str(each.pop("pause", 0))))
            if each.pop("compact", False):
                for server, (etcd, restart) in zip(servers, compaction, strict=True):
                    server.compact(etcd, restart)
            for server, run in zip(servers, runs, strict=True):
                run.append(pool.submit(server.alongside().send, each) if each.get("background") else server.send(each))
            if each.get("background"):
                time.sleep(0.3)
        return [
            [each.result() if isinstance(each, concurrent.futures.Future) else each for each in run] for run in runs
        ]


def main() -> int:
    """Record the scenarios; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", action="append", required=True, metavar="URL#TOKEN")
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--families", action="append", default=[], metavar="FILE", help="families, instead of the usual ones"
    )
    parser.add_argument(
        "--etcd", action="append", default=[], metavar="URL", help="etcd of each server, for compaction"
    )
    parser.add_argument(
        "--restart", action="append", default=[], metavar="COMMAND", help="command that restarts each server"
    )
    parser.add_argument(
        "--value", action="append", default=[], metavar="NAME=VALUE", help="value of ${NAME} in requests"
    )
    options = parser.parse_args()
    scenarios = (
        [] if options.families else [kind_scenario(json.loads(each)) for each in _OBJECTS.read_text().splitlines()]
    )
    families: dict[str, list[Document]] = {}
    for name in options.families or _FAMILIES:
        for line in Path(__file__).with_name(name).read_text().splitlines():
            asked = json.loads(line)
            families.setdefault(asked.pop("family"), []).append(asked)
    scenarios += [numbered(name, asks) for name, asks in families.items()]
    options.folder.mkdir(parents=True, exist_ok=True)
    # The second server is some revisions and a second ahead, so that revisions and times always differ.
    servers = [Server(each) for each in options.server]
    for server in servers:
        server.captured.update(each.partition("=")[::2] for each in options.value)
    for _ in range(7):
        servers[-1].send(
            ask("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"n": str(time.time_ns())}}}, kind=MERGE)
        )
    files: dict[str, list[str]] = {}
    for scenario in scenarios:
        name = str(scenario[0]["id"]).partition("/")[0]
        if options.only and options.only not in name:
            continue
        runs = recorded(scenario, servers, list(zip(options.etcd, options.restart, strict=True)))
        lines = files.setdefault(name, [])
        for exchange, (request, response), (_, other) in zip(scenario, *runs, strict=True):
            line: Document = {**exchange, "response": response, "variable": sorted(differences(response, other))}
            if "${" in json.dumps(request):
                line["template"] = {"path": request["path"], "body": request.get("body")}
            lines.append(json.dumps(line, separators=(",", ":")))
    for name, lines in files.items():
        data = gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0)
        (options.folder / f"{name}.jsonl.gz").write_bytes(data)
        print(name, len(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
