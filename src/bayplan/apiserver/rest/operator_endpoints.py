"""Endpoints for operators: `/flagz`, `/statusz` and `/metrics/slis`.

Source: k8s.io/apiserver/pkg/server/{flagz,statusz} and k8s.io/component-base/metrics v1.36.3.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from bayplan.apiserver.kinds.service_allocation import FIRST_NODE_PORT, LAST_NODE_PORT, SERVICE_NETWORK
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.rest.negotiation import JSON, YAML, Clause, Form, matches, parse_accept, wants_indentation
from bayplan.apiserver.rest.rendering import encode_document
from bayplan.apiserver.rest.service_tokens import ISSUER
from bayplan.apiserver.schema.facts import api_facts
from bayplan.base.plain_data import Document

FLAGS, STATUS = "Flagz", "Statusz"
KINDS = {"/flagz": FLAGS, "/statusz": STATUS}
"""The kind that each path serves, in formats of its own."""
ERROR_TYPES = (JSON, YAML)
_GROUP = "config.k8s.io"
_VERSIONS = ("v1alpha1", "v1beta1")
_PLAIN_TEXT = "text/plain"
_TEXT = f"{_PLAIN_TEXT}; charset=utf-8"
_METRICS_TEXT = f"{_PLAIN_TEXT}; version=0.0.4; charset=utf-8; escaping=underscores"
# Go's names, whatever the locale.
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for "
    "debugging purposes only."
)
_PATHS = ("/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version")
_GAUGE = "kubernetes_healthcheck"
_COUNTER = "kubernetes_healthchecks_total"


class OperatorEndpoints:
    """Flags, status, and metrics of health checks.

    Args:
        backend: the backend, for the clock and the settings.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._started = backend.clock()
        self._checked: Counter[tuple[str, str]] = Counter()

    def count(self, kind: str, names: tuple[str, ...]) -> None:
        """Count successful health checks of a kind: healthz, livez or readyz."""
        self._checked.update((name, kind) for name in names)

    def metrics(self) -> Response:
        """Return the metrics of the health checks that were made; nothing before the first."""
        found = sorted(self._checked.items())
        if not found:
            return Response(200, b"", _METRICS_TEXT)
        lines = [
            f"# HELP {_GAUGE} [STABLE] 1 if the last check with this name succeeded.",
            f"# TYPE {_GAUGE} gauge",
            *(f'{_GAUGE}{{name="{name}",type="{kind}"}} 1' for (name, kind), _ in found),
            f"# HELP {_COUNTER} [STABLE] Number of checks by name and result.",
            f"# TYPE {_COUNTER} counter",
            *(f'{_COUNTER}{{name="{name}",status="success",type="{kind}"}} {times}' for (name, kind), times in found),
        ]
        return Response(200, "".join(f"{line}\n" for line in lines).encode(), _METRICS_TEXT)

    def handle(self, kind: str, request: Request) -> Response:
        """Return the flags or the status, as text or as an object. Upstream ignores the method.

        Raises:
            ApiError: the client accepts neither text nor an object of this kind.
        """
        for clause in parse_accept(request.headers.get("accept") or "*/*"):
            if clause.media_type in (JSON, YAML) and _names(clause, kind):
                version = clause.parameters["v"]
                form = Form(clause.media_type, pretty=wants_indentation(request.query, request.headers))
                media_type = f"{clause.media_type};g={_GROUP};v={version};as={kind}"
                return Response(200, encode_document(self._document(kind, version), form), media_type)
            if matches(clause.media_type, _PLAIN_TEXT) and not {"as", "g", "v"} & clause.parameters.keys():
                return Response(200, self._text(kind).encode(), _TEXT)
        raise ApiError(406, f"only the following media types are accepted: {JSON}, {YAML}, {_PLAIN_TEXT}")

    def _document(self, kind: str, version: str) -> Document:
        head: Document = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": "apiserver"}}
        if kind == FLAGS:
            return {**head, "flags": self._flags()}
        return {
            **head,
            "startTime": f"{self._start:%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": self._uptime(),
            **_versions(),
            "paths": list(_PATHS),
        }

    def _text(self, kind: str) -> str:
        head = f"\napiserver {kind.lower()}\n{_WARNING}\n"
        if kind == FLAGS:
            return head + "".join(f"{name}: {value}\n" for name, value in self._flags().items())
        minutes, seconds = divmod(self._uptime(), 60)
        hours, minutes = divmod(minutes, 60)
        versions, start = _versions(), self._start
        day = f"{_WEEKDAYS[start.weekday()]} {_MONTHS[start.month - 1]} {start.day:>2}"
        return (
            f"{head}\nStarted: {day} {start:%H:%M:%S UTC %Y}\n"
            f"Up: {hours} hr {minutes:02} min {seconds:02} sec\n"
            f"Go version: {versions['goVersion']}\n"
            f"Binary version: {versions['binaryVersion']}\n"
            f"Emulation version: {versions['emulationVersion']}\n"
            f"Paths: {' '.join(_PATHS)}\n"
        )

    def _uptime(self) -> int:
        """Return the seconds since the start; 0 if the clock was set back."""
        return max(int(self._backend.clock() - self._started), 0)

    @property
    def _start(self) -> datetime:
        return datetime.fromtimestamp(self._started, UTC)

    def _flags(self) -> dict[str, str]:
        """Return the flags that make kube-apiserver behave like this server, sorted by name."""
        return {
            "allow-privileged": "true",
            "authorization-mode": "[AlwaysAllow]",
            "disable-admission-plugins": "[]" if self._backend.admits_service_accounts else "[ServiceAccount]",
            "service-account-issuer": f"[{ISSUER}]",
            "service-cluster-ip-range": str(SERVICE_NETWORK),
            "service-node-port-range": f"{FIRST_NODE_PORT}-{LAST_NODE_PORT}",
        }


def _names(clause: Clause, kind: str) -> bool:
    parameters = clause.parameters
    return (parameters.get("g"), parameters.get("as")) == (_GROUP, kind) and parameters.get("v") in _VERSIONS


def _versions() -> Document:
    version = api_facts().version
    return {
        "goVersion": version["goVersion"],
        "binaryVersion": str(version["gitVersion"]).removeprefix("v"),
        "emulationVersion": f"{version['emulationMajor']}.{version['emulationMinor']}",
    }
