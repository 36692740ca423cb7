"""The operations of our own API in one table: who answers, which parameters mean something, what a body is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bayplan.http_api import cluster_routes, compare_routes, control_routes, document_routes, fork_routes, pod_routes
from bayplan.http_api.document_writes import ApplyRequest
from bayplan.http_api.forks import ForkRequest
from bayplan.http_api.observation import Observation
from bayplan.http_api.query import Query

Handler = Callable[[Observation, Request, Query], Awaitable[Response]]

ROOT = "/bayplan/v1"
"""What the paths of all operations begin with."""

TEXT, ANY_LIST, LINES = "text", "list", "lines"
"""Bodies that are no structs: a configuration as text, a List of Kubernetes documents, lines of JSON or such a List."""


class Parameter(NamedTuple):
    """A parameter of a query.

    Attributes:
        type: of JSON Schema. text: what it means.
    """

    type: str
    text: str


PARAMETERS: Mapping[str, Parameter] = {
    "a": Parameter("string", "one side: now, the id of a fork, or the address of another server"),
    "after": Parameter("integer", "decisions behind this number"),
    "attempt": Parameter("integer", "which attempt to tell in full; the last one if not given"),
    "b": Parameter("string", "the other side, like a"),
    "before": Parameter("integer", "decisions before this number"),
    "best": Parameter("integer", "how many nodes to compare by scores"),
    "bins": Parameter("integer", "how many equal parts"),
    "blocks": Parameter("boolean", "whether each node tells its pods by what they take (limit up to 60)"),
    "by": Parameter("string", "what to group by: zone, pool, none or label:KEY"),
    "exhaustive": Parameter("boolean", "what each filter says by itself, also behind the first that failed"),
    "facets": Parameter("boolean", "whether to count the values of what was found"),
    "form": Parameter("string", "rows (one object a node) or columns (one list a column)"),
    "from": Parameter("integer", "number of the first decision"),
    "from_at": Parameter("string", "beginning, as a time"),
    "kind": Parameter("string", "moved, only_a or only_b"),
    "label": Parameter("string", "label selector, as kubectl's -l"),
    "limit": Parameter("integer", "how many at most"),
    "metric": Parameter("string", "a resource: cpu, memory, pods, or an extended one"),
    "namespace": Parameter("string", "of the pods"),
    "node": Parameter("string", "name of a node"),
    "objects": Parameter("boolean", "whether the answer holds what was made"),
    "offset": Parameter("integer", "how many to pass over"),
    "only": Parameter("string", "all, fit, failed or nearest"),
    "outcome": Parameter("string", "scheduled, unschedulable, error or skipped"),
    "pod": Parameter("string", "namespace/name"),
    "pool": Parameter("string", "of the nodes"),
    "priority": Parameter("integer", "of the pods"),
    "q": Parameter("string", "words that must all occur in the name (of pods: namespace/name)"),
    "reason": Parameter("string", "one of the reasons of pods that wait"),
    "replace": Parameter("boolean", "whether everything else goes first"),
    "run": Parameter("string", "the id of a fork, to read in it instead of the server"),
    "sort": Parameter("string", "what to sort by; '-' before it: the largest first"),
    "state": Parameter("string", "cordoned or not_ready"),
    "status": Parameter("string", "waiting, gated, placed, terminating or finished"),
    "tier": Parameter("string", "active, backoff, unschedulable or gated"),
    "to": Parameter("integer", "number of the last decision"),
    "to_at": Parameter("string", "end, as a time"),
    "topics": Parameter("string", "topics, separated by commas"),
    "workload": Parameter("string", "kind and name of what made the pods, as in Deployment/web"),
    "zone": Parameter("string", "of the nodes"),
}


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        method, path: what is asked; the path below /bayplan/v1.
        handler: who answers. Its docstring is the summary.
        query: names of the parameters that mean something.
        body: what is sent: a struct, `TEXT`, `ANY_LIST`, `LINES`, or None for nothing.
        status: of an answer that does what was asked.
    """

    method: str
    path: str
    handler: Handler
    query: tuple[str, ...] = ()
    body: type[msgspec.Struct] | str | None = None
    status: int = 200


_PAGE = ("offset", "limit")
_NODES = ("q", "zone", "pool", "label", "state", "run")
_POD = "/pods/{namespace}/{name}"
_MATRIX = ("sort", "only", "q", *_PAGE, "form", "exhaustive", "run")
_PODS = ("q", "status", "reason", "namespace", "node", "priority", "workload", "sort", *_PAGE, "facets", "run")

OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/", cluster_routes.root),
    Operation("GET", "/overview", cluster_routes.overview),
    Operation("GET", "/nodes", cluster_routes.nodes, (*_NODES, "sort", *_PAGE, "facets", "blocks")),
    Operation("GET", "/nodes/cells", cluster_routes.cells, ("metric", "by", *_NODES)),
    Operation("GET", "/nodes/{name}", cluster_routes.node, _PAGE),
    Operation("POST", "/nodes/{name}/drain", document_routes.drain),
    Operation("GET", "/pods", pod_routes.pods, _PODS),
    Operation("GET", _POD, pod_routes.pod, ("run",)),
    Operation("GET", f"{_POD}/attempts", pod_routes.attempts, (*_PAGE, "run")),
    Operation("GET", f"{_POD}/attempts/{{attempt}}/matrix", pod_routes.matrix, _MATRIX),
    Operation("GET", f"{_POD}/attempts/{{attempt}}/preemption", pod_routes.preemption, ("run",)),
    Operation("GET", f"{_POD}/explanation", pod_routes.explanation, ("attempt", "node", "best", "run")),
    Operation("GET", f"{_POD}/remedies", pod_routes.remedies),
    Operation("POST", f"{_POD}/retry", control_routes.retry_pod),
    Operation(
        "GET", "/decisions", cluster_routes.decisions, ("after", "before", "pod", "outcome", "node", "limit", "run")
    ),
    Operation("GET", "/decisions/density", cluster_routes.density, ("from", "to", "from_at", "to_at", "bins")),
    Operation("GET", "/queue", cluster_routes.queue, ("tier", *_PAGE)),
    Operation("POST", "/queue/flush", control_routes.flush_queue),
    Operation("GET", "/clock", cluster_routes.clock),
    Operation("PUT", "/clock", control_routes.set_clock, body=control_routes.ClockChange),
    Operation("POST", "/clock/step", control_routes.step_clock, body=control_routes.Step),
    Operation("GET", "/config", control_routes.config),
    Operation("PUT", "/config", control_routes.put_config, body=TEXT),
    Operation("GET", "/config/default", control_routes.default_config),
    Operation("POST", "/config/validate", control_routes.validate_config, body=TEXT),
    Operation("GET", "/plugins", control_routes.plugins),
    Operation("POST", "/plugins/reload", control_routes.reload_plugins),
    Operation("GET", "/snapshots", control_routes.snapshots),
    Operation("POST", "/snapshots", control_routes.take_snapshot, body=control_routes.SnapshotName, status=201),
    Operation("DELETE", "/snapshots/{name}", control_routes.delete_snapshot),
    Operation("POST", "/snapshots/{name}/restore", control_routes.restore_snapshot),
    Operation("POST", "/reset", control_routes.reset),
    Operation("GET", "/forks", fork_routes.forks),
    Operation("POST", "/forks", fork_routes.begin_fork, body=ForkRequest, status=201),
    Operation("GET", "/forks/{id}", fork_routes.fork),
    Operation("DELETE", "/forks/{id}", fork_routes.delete_fork),
    Operation("GET", "/compare", compare_routes.compare, ("a", "b", "kind", *_PAGE)),
    Operation("GET", f"/compare{_POD}", compare_routes.compare_pod, ("a", "b")),
    Operation("GET", "/placements", compare_routes.placements),
    Operation("POST", "/apply", document_routes.apply, body=ApplyRequest),
    Operation("POST", "/objects", document_routes.objects, ("objects",), LINES),
    Operation("GET", "/export", document_routes.export),
    Operation("POST", "/import", document_routes.import_documents, ("replace",), ANY_LIST),
    Operation("GET", "/sources", control_routes.sources),
)
