"""The table of the API's operations: methods, paths, handlers, parameters, bodies and responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bayplan.analysis.explanation import Explanation, PreemptionReport
from bayplan.answers.unblock import Unblocking
from bayplan.http_api import (
    cluster_routes,
    compare_routes,
    control_routes,
    document_routes,
    fork_routes,
    pod_routes,
    question_routes,
)
from bayplan.http_api.contract.cluster import Overview, Root, SourceList
from bayplan.http_api.contract.configuration import Configuration, DefaultConfiguration, PluginList, Validation
from bayplan.http_api.contract.decisions import (
    AttemptList,
    ClockStatus,
    ClockStep,
    DecisionList,
    DecisionsChanged,
    Density,
    NodeLanes,
)
from bayplan.http_api.contract.documents import Applied, Exported, Imported
from bayplan.http_api.contract.matrix import AnyMatrix
from bayplan.http_api.contract.nodes import Cells, CellsChanged, Drained, NodeList, NodePage
from bayplan.http_api.contract.pods import PodChanged, PodList, PodPage, PodsChanged, QueueChanged
from bayplan.http_api.contract.questions import Capacity, WaitingReasons, WhatIfList, WhatIfReport
from bayplan.http_api.contract.queue import Moved, QueueList
from bayplan.http_api.contract.runs import (
    Comparison,
    ForkList,
    ForkStatus,
    Placements,
    PodComparison,
    Restored,
    SnapshotList,
    SnapshotRow,
)
from bayplan.http_api.document_batch import Batch
from bayplan.http_api.document_writes import ApplyRequest
from bayplan.http_api.forks import ForkRequest
from bayplan.http_api.query import Query
from bayplan.http_api.server_state import ServerState

Handler = Callable[[ServerState, Request, Query], Awaitable[Response]]

ROOT = "/bayplan/v1"
"""The prefix of all operations' paths."""

TEXT, ANY_LIST, LINES = "text", "list", "lines"
"""Request bodies that are not structs: a configuration as text, a List of Kubernetes documents, JSON lines or such a List."""


class Parameter(NamedTuple):
    """A query parameter.

    Attributes:
        type: the JSON Schema type.
        text: the description.
    """

    type: str
    text: str


PARAMETERS: Mapping[str, Parameter] = {
    "a": Parameter("string", "one side: now, the ID of a fork, or the URL of another server"),
    "after": Parameter("integer", "only decisions after this number"),
    "attempt": Parameter("integer", "number of the attempt to return in full; the last one by default"),
    "axis": Parameter("string", "whether the parts span equal times or equal numbers of decisions: time or number"),
    "b": Parameter("string", "the other side, in the form of a"),
    "before": Parameter("integer", "only decisions before this number"),
    "best": Parameter("integer", "number of nodes whose scores are compared"),
    "bins": Parameter("integer", "number of equal parts"),
    "blocks": Parameter("boolean", "whether each node lists its pods with their requests (limit up to 60)"),
    "by": Parameter("string", "group nodes by zone, pool, none or label:KEY"),
    "exhaustive": Parameter(
        "boolean", "whether to show the results of filters after the first one that rejected the node"
    ),
    "facets": Parameter("boolean", "whether to count the matches by the value of each field"),
    "form": Parameter("string", "rows (one object per node) or columns (one list per column)"),
    "from": Parameter("integer", "number of the first decision"),
    "from_at": Parameter("string", "start, as a time"),
    "kind": Parameter("string", "moved, only_a or only_b"),
    "label": Parameter("string", "label selector, as for kubectl's -l"),
    "limit": Parameter("integer", "maximum number of items"),
    "metric": Parameter("string", "a resource: cpu, memory, pods, or an extended one"),
    "namespace": Parameter("string", "namespace of the pods"),
    "node": Parameter("string", "name of a node"),
    "objects": Parameter("boolean", "whether the response contains the created objects"),
    "offset": Parameter("integer", "number of items to skip"),
    "only": Parameter("string", "all, fit, failed or nearest"),
    "outcome": Parameter("string", "scheduled, unschedulable, error or skipped"),
    "pod": Parameter("string", "namespace/name"),
    "pool": Parameter("string", "pool of the nodes"),
    "preempt": Parameter("boolean", "whether copies may evict pods of lower priority"),
    "priority": Parameter("integer", "priority of the pods"),
    "q": Parameter("string", "words that must all occur in the name (of pods: namespace/name)"),
    "reason": Parameter("string", "one of the reasons why pods are pending"),
    "replace": Parameter("boolean", "whether to delete all existing objects first"),
    "run": Parameter("string", "ID of a fork to read instead of the server"),
    "seeds": Parameter("integer", "number of seeds to try, for a range of results"),
    "sort": Parameter("string", "key to sort by; with '-' before it, in descending order"),
    "state": Parameter("string", "cordoned or not_ready"),
    "status": Parameter("string", "waiting, gated, placed, terminating or finished"),
    "tier": Parameter("string", "active, backoff, unschedulable or gated"),
    "to": Parameter("integer", "number of the last decision"),
    "to_at": Parameter("string", "end, as a time"),
    "topics": Parameter("string", "topics, separated by commas"),
    "workload": Parameter(
        "string",
        "workload of the pods, e.g. Deployment/web; in questions also pod/NAMESPACE/NAME; for capacity also a mix: web=3,db",
    ),
    "zone": Parameter("string", "zone of the nodes"),
}


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        method, path: the method and path of the request; the path is relative to /bayplan/v1.
        handler: the function that handles the request. The first line of its docstring is the summary.
        answer: the struct of the response, or a union of structs; see `bayplan.http_api.contract`.
        query: the names of the query parameters.
        body: the type of the request body: a struct, `TEXT`, `ANY_LIST`, `LINES`, or None without a body.
        status: the HTTP status of a successful response.
    """

    method: str
    path: str
    handler: Handler
    answer: type | UnionType
    query: tuple[str, ...] = ()
    body: type[msgspec.Struct] | str | None = None
    status: int = 200


_PAGE = ("offset", "limit")
_NODES = ("q", "zone", "pool", "label", "state", "run")
_POD = "/pods/{namespace}/{name}"
_MATRIX = ("sort", "only", "q", *_PAGE, "form", "exhaustive", "run")
_PODS = ("q", "status", "reason", "namespace", "node", "priority", "workload", "sort", *_PAGE, "facets", "run")

OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/", cluster_routes.root, Root),
    Operation("GET", "/overview", cluster_routes.overview, Overview),
    Operation("GET", "/nodes", cluster_routes.nodes, NodeList, (*_NODES, "sort", *_PAGE, "facets", "blocks")),
    Operation("GET", "/nodes/cells", cluster_routes.cells, Cells, ("metric", "by", *_NODES)),
    Operation(
        "GET", "/nodes/lanes", cluster_routes.lanes, NodeLanes, ("q", "from_at", "to_at", "bins", "offset", "limit")
    ),
    Operation("GET", "/nodes/{name}", cluster_routes.node, NodePage, _PAGE),
    Operation("POST", "/nodes/{name}/drain", document_routes.drain, Drained),
    Operation("GET", "/pods", pod_routes.pods, PodList, _PODS),
    Operation("GET", _POD, pod_routes.pod, PodPage, ("run",)),
    Operation("GET", f"{_POD}/attempts", pod_routes.attempts, AttemptList, (*_PAGE, "run")),
    Operation("GET", f"{_POD}/attempts/{{attempt}}/matrix", pod_routes.matrix, AnyMatrix, _MATRIX),
    Operation(
        "GET", f"{_POD}/attempts/{{attempt}}/preemption", pod_routes.preemption, PreemptionReport | None, ("run",)
    ),
    Operation("GET", f"{_POD}/explanation", pod_routes.explanation, Explanation, ("attempt", "node", "best", "run")),
    Operation("POST", f"{_POD}/retry", control_routes.retry_pod, Moved),
    Operation("GET", "/explain", question_routes.explain, Explanation, ("workload", "node", "best")),
    Operation("GET", "/unblock", question_routes.unblock, Unblocking, ("workload",)),
    Operation("GET", "/capacity", question_routes.capacity, Capacity, ("workload", "preempt", "limit", "seeds")),
    Operation("GET", "/waiting", question_routes.waiting, WaitingReasons),
    Operation("POST", "/what-if", question_routes.what_if, WhatIfReport, body=question_routes.WhatIfRequest),
    Operation("GET", "/what-if", question_routes.what_ifs, WhatIfList),
    Operation("GET", "/what-if/{id}", question_routes.stored_what_if, WhatIfReport),
    Operation("DELETE", "/what-if/{id}", question_routes.delete_what_if, WhatIfList),
    Operation(
        "GET",
        "/decisions",
        cluster_routes.decisions,
        DecisionList,
        ("after", "before", "pod", "outcome", "node", "limit", "run"),
    ),
    Operation(
        "GET",
        "/decisions/density",
        cluster_routes.density,
        Density,
        ("from", "to", "from_at", "to_at", "bins", "axis"),
    ),
    Operation("GET", "/queue", cluster_routes.queue, QueueList, ("tier", *_PAGE)),
    Operation("POST", "/queue/flush", control_routes.flush_queue, Moved),
    Operation("GET", "/clock", cluster_routes.clock, ClockStatus),
    Operation("PUT", "/clock", control_routes.set_clock, ClockStatus, body=control_routes.ClockChange),
    Operation("POST", "/clock/step", control_routes.step_clock, ClockStep, body=control_routes.Step),
    Operation("GET", "/config", control_routes.config, Configuration),
    Operation("PUT", "/config", control_routes.put_config, Configuration, body=TEXT),
    Operation("GET", "/config/default", control_routes.default_config, DefaultConfiguration),
    Operation("POST", "/config/validate", control_routes.validate_config, Validation, body=TEXT),
    Operation("GET", "/plugins", control_routes.plugins, PluginList),
    Operation("POST", "/plugins/reload", control_routes.reload_plugins, PluginList),
    Operation("GET", "/snapshots", control_routes.snapshots, SnapshotList),
    Operation(
        "POST", "/snapshots", control_routes.take_snapshot, SnapshotRow, body=control_routes.SnapshotName, status=201
    ),
    Operation("DELETE", "/snapshots/{name}", control_routes.delete_snapshot, SnapshotList),
    Operation("POST", "/snapshots/{name}/restore", control_routes.restore_snapshot, Restored),
    Operation("POST", "/reset", control_routes.reset, Restored),
    Operation("GET", "/forks", fork_routes.forks, ForkList),
    Operation("POST", "/forks", fork_routes.begin_fork, ForkStatus, body=ForkRequest, status=201),
    Operation("GET", "/forks/{id}", fork_routes.fork, ForkStatus),
    Operation("DELETE", "/forks/{id}", fork_routes.delete_fork, ForkList),
    Operation("GET", "/compare", compare_routes.compare, Comparison, ("a", "b", "kind", *_PAGE)),
    Operation("GET", f"/compare{_POD}", compare_routes.compare_pod, PodComparison, ("a", "b")),
    Operation("GET", "/placements", compare_routes.placements, Placements),
    Operation("POST", "/apply", document_routes.apply, Applied, body=ApplyRequest),
    Operation("POST", "/objects", document_routes.objects, Batch, ("objects",), LINES),
    Operation("GET", "/export", document_routes.export, Exported),
    Operation("POST", "/import", document_routes.import_documents, Imported, ("replace",), ANY_LIST),
    Operation("GET", "/sources", control_routes.sources, SourceList),
)

TOPICS: Mapping[str, type] = {
    "overview": Overview,
    "pods": PodsChanged,
    "queue": QueueChanged,
    "clock": ClockStatus,
    "decisions": DecisionsChanged,
    "nodes:{metric}": CellsChanged,
    "pod:{namespace}/{name}": PodChanged,
}
"""The type of `data` in a frame of the stream, by topic."""
