"""Periodic maintenance of a running server: renew the leases of nodes, and delete expired events.

Maintenance runs only in real time. In virtual time it would add work every second, and no decision depends on it.
"""

from __future__ import annotations

from collections import deque

from bayplan.apiserver.bridge.kubelet import Kubelet
from bayplan.apiserver.bridge.object_writer import CONTROLLERS, KUBELET, ObjectWriter
from bayplan.apiserver.rest.backend import decode_item
from bayplan.apiserver.store.item import DELETED, MODIFIED, Write
from bayplan.apiserver.store.store import Store
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_micro_time, parse_time_ns
from bayplan.base.plain_data import Document, part
from bayplan.cluster.store import ObjectStore
from bayplan.controllers.writer import WriteRejected

LEASES, LEASE_NAMESPACE = "coordination.k8s.io/leases", "kube-node-lease"
EVENT_TTL_NS = 3600 * SECOND_NS
"""Default lifetime of events, as in kube-apiserver."""
OWN_MARK = "bayplan.io/virtual-node"

_RENEWAL_SECONDS = 10
_NODES_A_SECOND = 50
_EVENTS = "events"


class Leases:
    """Renews the leases of nodes without a real kubelet.

    The interval is ten seconds. In a cluster of more than 500 nodes it is longer, and the duration of the leases is
    adapted.

    Args:
        nodes: the typed objects.
        documents: the API's store.
        writer: writes untyped objects through the API.
        agent: the kubelet; its `foreign` receives the nodes whose lease another client renews.
    """

    def __init__(self, nodes: ObjectStore, documents: Store, writer: ObjectWriter, agent: Kubelet) -> None:
        self._nodes = nodes
        self._documents = documents
        self._writer = writer
        self._agent = agent
        self._due: dict[str, int] = {}

    def begin(self, now_ns: int) -> None:
        """Find the nodes whose lease another client renewed recently, and set the kubelet's `foreign` to them."""
        self._agent.foreign.clear()
        for item in self._documents.between(LEASES, LEASE_NAMESPACE):
            spec = part(decode_item(item), "spec")
            renewed, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
            if OWN_MARK.encode() in item.raw or not isinstance(renewed, str) or not isinstance(seconds, int):
                continue
            if parse_time_ns(renewed) + seconds * SECOND_NS > now_ns:
                self._agent.foreign[item.name] = None

    def follow(self, write: Write) -> None:
        """Update the kubelet's `foreign` after a write to a lease."""
        if write.table != LEASES or write.new.namespace != LEASE_NAMESPACE:
            return
        name = write.new.name
        if write.type == DELETED:
            self._due.pop(name, None)
            self._agent.foreign.pop(name, None)
        elif write.type == MODIFIED and OWN_MARK.encode() not in write.new.raw:
            self._agent.foreign[name] = None

    def renew(self, now_ns: int, most: int) -> int:
        """Renew at most `most` due leases, and return the number of renewed leases."""
        seconds = max(_RENEWAL_SECONDS, len(self._nodes.nodes) // _NODES_A_SECOND)
        done = 0
        for name in list(self._nodes.nodes):
            if done >= most:
                break
            if name in self._agent.foreign or self._due.get(name, 0) > now_ns:
                continue
            self._due[name] = now_ns + seconds * SECOND_NS
            self._write(name, 4 * seconds, now_ns)
            done += 1
        return done

    def _write(self, name: str, seconds: int, now_ns: int) -> None:
        self._writer.manager = KUBELET
        renewed = format_micro_time(now_ns)
        spec: Document = {"holderIdentity": name, "leaseDurationSeconds": seconds, "renewTime": renewed}
        try:
            if self._documents.get(LEASES, (LEASE_NAMESPACE, name)) is not None:
                self._writer.change(LEASES, (LEASE_NAMESPACE, name), {"spec": spec})
                return
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": self._nodes.nodes[name].metadata.uid}
            metadata: Document = {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
            metadata["annotations"] = {OWN_MARK: "true"}
            self._writer.create(LEASES, LEASE_NAMESPACE, {"metadata": metadata, "spec": spec})
        except WriteRejected:
            # Ignore a missing or terminating namespace: nothing depends on the lease.
            return


class EventExpiry:
    """Deletes events some time after their last occurrence, as upstream's storage does.

    Args:
        documents: the API's store.
        writer: writes untyped objects through the API.
        ttl_ns: the lifetime of an event after its last occurrence.
    """

    def __init__(self, documents: Store, writer: ObjectWriter, ttl_ns: int = EVENT_TTL_NS) -> None:
        self._ttl_ns = ttl_ns
        self._documents = documents
        self._writer = writer
        # Time, revision and key of each write of an event, oldest first. A stored event with another revision was
        # written later.
        self._written: deque[tuple[int, int, tuple[str, str]]] = deque()

    def begin(self) -> None:
        """Read the last occurrence of all existing events."""
        items = self._documents.between(_EVENTS)
        found = [(_last_ns(decode_item(item)), item.revision, item.key) for item in items]
        self._written = deque(sorted(found))

    def follow(self, write: Write, now_ns: int) -> None:
        """Record the time of a write to an event."""
        if write.table == _EVENTS and write.type != DELETED:
            self._written.append((now_ns, write.revision, write.new.key))

    def expire(self, now_ns: int, most: int) -> int:
        """Delete at most `most` expired events, and return the number of deleted events."""
        done = 0
        self._writer.manager = CONTROLLERS
        while done < most and self._written and self._written[0][0] < now_ns - self._ttl_ns:
            _, revision, key = self._written.popleft()
            item = self._documents.get(_EVENTS, key)
            if item is not None and item.revision == revision:
                self._writer.delete(_EVENTS, key)
                done += 1
        return done


def _last_ns(event: Document) -> int:
    """Return the time of an event's last occurrence in nanoseconds since 1970, 0 if unknown."""
    series = event.get("series")
    observed = series.get("lastObservedTime") if isinstance(series, dict) else None
    metadata = event["metadata"]
    created = metadata.get("creationTimestamp") if isinstance(metadata, dict) else None
    for time in (observed, event.get("lastTimestamp"), event.get("eventTime"), created):
        if isinstance(time, str) and time:
            return parse_time_ns(time)
    return 0
