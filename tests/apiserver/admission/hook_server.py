"""A webhook for tests and recordings, whose answer depends only on the path of the request.

python -m tests.apiserver.admission.hook_server PORT CERTIFICATE KEY
"""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Review = dict[str, Any]


_DETAILED = {"code": 422, "message": "m", "details": {"name": "n", "causes": [{"message": "c"}]}}


def _patch(*operations: Review) -> Review:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(operations).encode()).decode(),
    }


def _add(path: str, value: object) -> Review:
    return {"op": "add", "path": path, "value": value}


def _describe(request: Review) -> Review:
    """Deny the request with a message that describes the request."""
    new, old = request.get("object") or {}, request.get("oldObject") or {}
    parts = [
        *(request["operation"], request["kind"]["kind"], request["kind"]["version"], request["resource"]["resource"]),
        *(request.get("subResource", "-"), request["requestKind"]["version"], request.get("name", "-")),
        *(request.get("namespace", "-"), request["userInfo"]["username"], str(request["dryRun"])),
        "options:" + ",".join(f"{name}={value}" for name, value in sorted((request.get("options") or {}).items())),
        "keys:" + ",".join(sorted(request)),
        "object:" + ",".join(sorted(new)) + ";" + ",".join(sorted(new.get("metadata", {}))),
        "old:" + ",".join(sorted(old)),
    ]
    return {"allowed": False, "status": {"message": " ".join(parts)}}


def _converted(review: Review) -> Review:
    """Convert the objects of a ConversionReview by renaming a field of their spec."""
    request = review["request"]
    wanted = request["desiredAPIVersion"]
    objects = []
    for each in request["objects"]:
        spec = dict(each.get("spec") or {})
        for old, new in (("size", "count"),) if wanted.endswith("v2") else (("count", "size"),):
            if old in spec:
                spec[new] = spec.pop(old)
        objects.append({**each, "apiVersion": wanted, "spec": spec})
    response = {"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def answer(path: str, review: Review) -> tuple[int, object]:
    """Return the status and the body of the answer to a review that was sent to `path`."""
    if path == "/convert":
        return 200, _converted(review)
    if path == "/convert-fails":
        result = {"status": "Failure", "message": "cannot convert today"}
        response = {"uid": review["request"]["uid"], "result": result}
        return 200, {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
    request = review["request"]
    labels = (request.get("object") or {}).get("metadata", {}).get("labels") or {}
    count = int(labels.get("count", "0")) + 1
    plain: dict[str, Review] = {
        "/allow": {"allowed": True},
        "/deny": {"allowed": False, "status": {"message": "not today"}},
        "/deny-code": {"allowed": False, "status": {"code": 409, "reason": "Conflict", "message": "taken"}},
        "/deny-reason": {"allowed": False, "status": {"code": 403, "reason": "Forbidden"}},
        "/deny-silent": {"allowed": False},
        "/deny-details": {"allowed": False, "status": _DETAILED},
        "/warn": {"allowed": True, "warnings": ["first of two", "second"], "auditAnnotations": {"k": "v"}},
        "/warn-deny": {"allowed": False, "warnings": ["beware"], "status": {"message": "no"}},
        "/label": _patch(_add("/metadata/labels/hooked", "yes")),
        "/count": _patch(_add("/metadata/labels/count", str(count))),
        "/b": _patch(_add("/metadata/labels/b", "b")),
        "/data": _patch(_add("/data", {"from": "hook"})),
        "/patch-missing": _patch({"op": "remove", "path": "/data/nope"}),
        "/patch-nopath": _patch(_add("/nope/x", 1)),
        "/patch-type": _patch(_add("/data", "text")),
        "/patch-test": _patch({"op": "test", "path": "/metadata/name", "value": "other"}),
        "/patch-namespace": _patch(_add("/metadata/namespace", "other")),
        "/patch-invalid": _patch(_add("/metadata/labels/x", "not valid!")),
        "/patch-notype": {"allowed": True, "patch": base64.b64encode(b"[]").decode()},
        "/patch-only-type": {"allowed": True, "patchType": "JSONPatch"},
        "/patch-other-type": {"allowed": True, "patchType": "Merge", "patch": base64.b64encode(b"[]").decode()},
        "/patch-broken": {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(b"nope").decode()},
        "/wrong-uid": {"allowed": True, "uid": "other"},
    }  # fmt: skip
    if path == "/tell":
        return _reply(review, _describe(request))
    if path in plain:
        return _reply(review, plain[path])
    if path == "/wrong-version":
        return 200, {
            "apiVersion": "admission.k8s.io/v1beta1",
            "kind": "AdmissionReview",
            "response": {"uid": request["uid"], "allowed": True},
        }
    if path == "/no-response":
        return 200, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    if path == "/slow":
        time.sleep(3)
        return _reply(review, {"allowed": True})
    if path == "/huge":
        return 200, "x" * (4 << 20)
    bodies: dict[str, tuple[int, object]] = {
        "/fails": (500, "broken"),
        "/text": (200, "hello"),
        "/empty": (200, ""),
        "/teapot": (418, "tea"),
    }
    return bodies.get(path, (404, "nothing here"))


def _reply(review: Review, response: Review) -> tuple[int, object]:
    whole = {"uid": review["request"]["uid"], **response}
    return 200, {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": whole}


class HookServer:
    """A webhook that serves HTTPS on localhost from a thread.

    Attributes:
        port: The port that it listens on.
        bundle: Its certificate, encoded as the ``caBundle`` of a webhook configuration.
        asked: The paths of the requests so far, in order.
        released: Set to let the requests to ``/waits`` be answered.
    """

    def __init__(self, certificate: Path, key: Path, port: int = 0) -> None:
        asked: list[str] = []
        released = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.partition("?")[0]
                asked.append(path)
                if path == "/waits":
                    released.wait()
                    path = "/allow"
                status, found = answer(path, json.loads(body))
                data = found.encode() if isinstance(found, str) else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain" if isinstance(found, str) else "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Log no requests."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                """Log no errors: clients that do not trust the certificate disconnect."""

        self.asked, self.released = asked, released
        self._server = Server(("127.0.0.1", port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = int(self._server.server_address[1])
        self.bundle = base64.b64encode(certificate.read_bytes()).decode()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the server and its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for localhost and ``hook.default.svc``; return the paths of certificate and key."""
    certificate, key = folder / "hook.crt", folder / "hook.key"
    names = "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:hook.default.svc"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
    command += ["-days", "2", "-subj", "/CN=hook", "-addext", names]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return certificate, key


if __name__ == "__main__":
    server = HookServer(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[1]))
    print(server.port, flush=True)
    server._thread.join()
