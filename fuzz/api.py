"""Compare a real kube-apiserver and Bayplan's API on random requests: ``python -m fuzz.api --server URL#TOKEN``.

The server must be fresh (`oracle/current/realcluster/up.sh`). Lists of objects that kube-apiserver creates for itself are left out.
Exit code 1 if any response differs.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import re
import ssl
import sys
from collections import Counter
from urllib.parse import unquote, urlsplit

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response, parse_query
from bayplan.apiserver.store.store import Store
from fuzz.api_requests import ApiRequest, ResourcePath, random_request

AGENT = "conformance/1.0"
OWN_OBJECTS = frozenset(
    (
        *("apiservices", "clusterrolebindings", "clusterroles", "componentstatuses", "configmaps", "endpoints"),
        *("events",),
        *("endpointslices", "flowschemas", "ipaddresses", "leases", "namespaces", "priorityclasses"),
        *("prioritylevelconfigurations", "rolebindings", "roles", "servicecidrs", "services"),
    )
)
"""Resources of which kube-apiserver creates objects for itself, which differ from ours."""

_VARIABLE = frozenset(("uid", "creationTimestamp", "time", "resourceVersion", "deletionTimestamp", "description"))
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NUMBER = re.compile(r"\b\d+\b")

Answer = tuple[int, str, object]
"""The status code, the warnings, and the body without values that vary."""


class OwnApi:
    """Bayplan's API in process, over an empty store."""

    def __init__(self) -> None:
        self.backend = Backend(Store())
        bootstrap(self.backend)
        self._api = Api(self.backend)

    def resources(self) -> list[ResourcePath]:
        """Return all served resources."""
        found = []
        for (group, version), entries in self.backend.registry.versions.items():
            path = f"/apis/{group}/{version}" if group else f"/api/{version}"
            found += [ResourcePath(path, each.name, each.namespaced) for each in entries if "/" not in each.name]
        return found

    def answer(self, request: ApiRequest) -> Answer:
        """Return the response; "" instead of the stream of a watch."""
        path, _, query = request.path.partition("?")
        headers = {"user-agent": AGENT, **{name.lower(): value for name, value in request.headers.items()}}
        found = asyncio.run(
            self._api.handle(Request(request.method, unquote(path), parse_query(query), headers, request.body))
        )
        if not isinstance(found, Response):
            return 200, "", ""
        body = b"" if request.method == "HEAD" else found.body
        return found.status, ", ".join(value for name, value in found.headers if name == "warning"), comparable(body)


class RealApi:
    """A kube-apiserver."""

    def __init__(self, server: str) -> None:
        url, _, self._token = server.partition("#")
        self._host = urlsplit(url).netloc

    def answer(self, request: ApiRequest) -> Answer:
        """Return the response; "" instead of the stream of a watch."""
        # Use a new connection for each request: kube-apiserver closes connections after some errors.
        connection = http.client.HTTPSConnection(self._host, context=ssl._create_unverified_context(), timeout=30)
        headers = {"Authorization": f"Bearer {self._token}", "User-Agent": AGENT, **request.headers}
        connection.request(request.method, request.path, request.body or None, headers)
        found = connection.getresponse()
        body = found.read()
        connection.close()
        is_watch = found.status == 200 and ("/watch/" in request.path)
        return found.status, found.getheader("warning") or "", "" if is_watch else comparable(body)


def comparable(body: bytes) -> object:
    """Return a body, decoded if it is JSON, without values that vary: times, uids, versions, descriptions and numbers."""
    try:
        return _masked(json.loads(body))
    except ValueError:
        return _masked(body.decode("latin-1"))


def _masked(value: object) -> object:
    if isinstance(value, dict):
        return {name: "" if name in _VARIABLE else _masked(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_masked(each) for each in value]
    return _NUMBER.sub("N", _UID.sub("U", value)) if isinstance(value, str) else value


def is_compared(request: ApiRequest) -> bool:
    """Return whether both servers have the same objects in the answer to a request."""
    return request.method not in ("GET", "DELETE") or request.resource.name not in OWN_OBJECTS


def main() -> int:
    """Compare the responses, print those that differ and the counts; return the exit code."""
    options = _options()
    own, real = OwnApi(), RealApi(options.server)
    resources, statuses, differing, compared = own.resources(), Counter[int](), 0, 0
    for number in range(options.first, options.first + options.requests):
        request = random_request(options.seed, number, resources)
        if not is_compared(request):
            continue
        want, got = real.answer(request), own.answer(request)
        compared += 1
        statuses[want[0]] += 1
        if want != got:
            differing += 1
            if differing <= options.show:
                _show(number, request, want, got)
    print(
        f"{compared:,} requests, seed {options.seed}: {differing:,} differ. Statuses: {dict(sorted(statuses.items()))}"
    )
    return 1 if differing else 0


def _show(number: int, request: ApiRequest, want: Answer, got: Answer) -> None:
    print(f"== {number}: {request.method} {request.path}\n{request.headers} {request.body.decode()}")
    for name, answer in (("want", want), ("got", got)):
        print(f"  {name:5} {answer[0]} {answer[1]} {_text(answer[2])}", flush=True)


def _text(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 600 else f"{text[:600]}..."


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz.api", description="Compare the API with a kube-apiserver.")
    parser.add_argument("--server", required=True, metavar="URL#TOKEN", help="a fresh kube-apiserver")
    parser.add_argument(
        "--requests", type=int, default=2000, metavar="N", help="number of requests (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first request")
    parser.add_argument(
        "--show", type=int, default=10, metavar="N", help="differing requests to print (default: %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
