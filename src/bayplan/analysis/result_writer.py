"""Write the tables and the summary of a result into an empty directory; `bayplan.analysis.export` renames it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import astuple, replace

from bayplan.analysis.pending import waiting_message
from bayplan.analysis.record_writer import write_records
from bayplan.analysis.result_layout import OPTIONAL_TABLES, RECORDS, SUMMARY, TABLES
from bayplan.analysis.run_facts import RunFacts
from bayplan.analysis.table_writer import TableWriter
from bayplan.analysis.utilisation import utilisation
from bayplan.analysis.waits import WAITING
from bayplan.engine.records import RecordLevel
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.node import Node, NodeStatus
from bayplan.objects.node_prices import PRICE
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts, RequestGates, accounted_requests, node_amounts
from bayplan.sim.result import SimulationResult
from bayplan.sim.scaling import GROUP_LABEL, lifetime_price
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT
from bayplan.state.resource_table import PODS

Row = tuple[object, ...]


def write_result(result: SimulationResult, directory: Path, facts: RunFacts) -> None:
    """Write all files of a result into an existing, empty directory. `facts` becomes ``summary.json``."""
    templates = _Templates()
    rows = {
        "decisions": _decisions(result),
        "pods": _pods(result, templates),
        "templates": templates.rows(),
        "nodes": _nodes(result),
        "usage": _usage(result),
        "events": _events(result),
        "objects": _objects(result),
    }
    for name, schema in TABLES.items():
        with TableWriter(directory / f"{name}.parquet", schema) as writer:
            writer.add_all(rows[name])
    optional = {
        "timeline": result.moves,
        "scaling": None if result.scaling is None else result.scaling.events,
        "descheduled": result.descheduled,
    }
    for name, found in optional.items():
        if found is not None:
            with TableWriter(directory / f"{name}.parquet", OPTIONAL_TABLES[name]) as writer:
                writer.add_all(astuple(each) for each in found)
    if result.records.level is RecordLevel.FULL:
        (directory / RECORDS).mkdir()
        write_records(result.records, directory / RECORDS)
    text = msgspec.json.encode(facts, order="sorted")
    (directory / SUMMARY).write_bytes(msgspec.json.format(text, indent=2) + b"\n")


def _decisions(result: SimulationResult) -> Iterator[Row]:
    for record in result.records:
        values = astuple(record)
        frame = record.frame if record.frame >= 0 else None
        yield (*values[:3], record.outcome.name.lower(), *values[4:-1], frame)


def _pods(result: SimulationResult, templates: _Templates) -> Iterator[Row]:
    gates, known = result.state.request_gates, dict[int, Amounts]()
    for pod in result.pods:
        message = waiting_message(pod, result.scheduler) if pod.fate in WAITING else pod.message
        template = templates.number_of(pod.pod)
        requests = _requests(pod.pod, template, known, gates)
        yield (
            pod.key,
            pod.uid,
            pod.workload,
            pod.priority,
            pod.scheduler_name,
            pod.arrived_ns,
            pod.bound_ns,
            pod.started_ns,
            pod.ended_ns,
            pod.node,
            pod.imported,
            pod.attempts,
            pod.last_failure_ns,
            message,
            pod.fate.value,
            list(requests.items()),
            template,
            [] if pod.pod is None else sorted(pod.pod.metadata.labels.items()),
            pod.disruption,
        )


def _requests(pod: Pod | None, template: int | None, known: dict[int, Amounts], gates: RequestGates) -> Amounts:
    """Return a pod's requests. They are computed once per template, except for pods with resources in their status."""
    if pod is None or template is None:
        return {}
    status = pod.status
    if status.resources is not None or status.container_statuses or status.init_container_statuses:
        return accounted_requests(pod, gates).requests
    requests = known.get(template)
    if requests is None:
        requests = known[template] = accounted_requests(pod, gates).requests
    return requests


class _Templates:
    """The distinct pod specs without node names, numbered, as JSON."""

    def __init__(self) -> None:
        self._encode = msgspec.json.Encoder(order="sorted").encode
        self._numbers: dict[bytes, int] = {}

    def number_of(self, pod: Pod | None) -> int | None:
        """Return the number of a pod's template; None if its spec is unknown."""
        if pod is None:
            return None
        spec = replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec
        return self._numbers.setdefault(self._encode(spec), len(self._numbers))

    def rows(self) -> Iterator[Row]:
        """Yield the templates; call after all pods have been numbered."""
        for text, number in self._numbers.items():
            yield number, text.decode()


def _nodes(result: SimulationResult) -> Iterator[Row]:
    state, costs = result.state, () if result.scaling is None else result.scaling.costs
    for node in result.nodes:
        group = node.node.metadata.labels.get(GROUP_LABEL, "")
        last = (group, lifetime_price(node, costs))
        times = (node.added_ns, node.removed_ns)
        row = state.nodes.row_of.get(node.name) if node.removed_ns is None else None
        typed = state.nodes.nodes[row] if row is not None else None
        if row is None or typed is None:
            amounts = [item for item in node_amounts(node.node.status.allocatable).items() if item[1]]
            yield (node.name, node.zone, *times, amounts, [], None, *last)
            continue
        text = msgspec.json.encode(described(typed), order="sorted").decode()
        yield (node.name, node.zone, *times, _allocatable(state, row), _requested(state, row), text, *last)


def described(node: Node) -> Node:
    """Return a copy of a node with only the fields that a result stores: name, labels, price, spec, allocatable resources."""
    annotations = {name: text for name, text in node.metadata.annotations.items() if name == PRICE}
    metadata = ObjectMeta(name=node.metadata.name, labels=node.metadata.labels, annotations=annotations)
    return replace(node, metadata=metadata, status=NodeStatus(allocatable=node.status.allocatable))


def _allocatable(state: ClusterState, row: int) -> list[tuple[str, int]]:
    nodes = state.nodes
    amounts = {PODS: int(nodes.allowed_pods[row])}
    amounts |= {name: nodes.allocatable.item(number, row) for name, number in nodes.resources.items()}
    return [(name, amount) for name, amount in amounts.items() if amount]


def _requested(state: ClusterState, row: int) -> list[tuple[str, int]]:
    amounts = {PODS: state.usage.item(POD_COUNT, row)}
    for name, number in state.nodes.resources.items():
        amounts[name] = state.usage.item(FIRST_RESOURCE + number, row)
    return [(name, amount) for name, amount in amounts.items() if amount]


def _usage(result: SimulationResult) -> Iterator[Row]:
    for row in utilisation(result.usage):
        yield (
            row.resource,
            row.zone,
            row.nodes,
            row.allocatable,
            row.requested,
            row.share,
            row.mean_share,
            row.peak_share,
            row.peak_requested,
            row.peak_ns,
        )


def _events(result: SimulationResult) -> Iterator[Row]:
    for event in result.events:
        yield (
            event.pod,
            event.type,
            event.reason,
            event.action,
            event.note,
            event.first_ns,
            event.last_ns,
            event.count,
        )


def _objects(result: SimulationResult) -> Iterator[Row]:
    """Yield a row for each object that exists when the run ends, except nodes and pods, sorted by kind and key."""
    encode, store = msgspec.json.Encoder(order="sorted").encode, result.cluster.store
    for kind in sorted(store.kinds(), key=lambda struct: struct.__name__):
        if kind in (Node, Pod):
            continue
        for key in sorted(store.keys(kind)):
            item = store.get(kind, key)
            assert item is not None
            metadata = item.metadata
            yield kind.__name__, metadata.namespace, metadata.name, encode(item).decode()
