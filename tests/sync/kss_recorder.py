"""Writes files as kube-scheduler-simulator's recorder does, with content of our own.

By its source: one informer a kind, begun one after the other (namespaces, priority classes, storage classes, claims, nodes,
volumes, pods), each as soon as the lists before it have come; additions, updates and deletions as they are handed out, each with
the local time to the nanosecond; whole objects but for deletions, which name theirs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from bayplan.base.plain_data import Document, part
from tests.sync.world import node, pod

BEGAN = datetime(2026, 4, 28, 10, 0, 0, 957176, UTC)
TOKYO = timezone(timedelta(hours=9))


def go_time(since: float, zone: timezone = TOKYO) -> str:
    """Return a time after the start of the recording in Go's format: nanoseconds without trailing zeros."""
    nanoseconds = BEGAN.microsecond * 1000 + 231 + round(since * 1e9)
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = (BEGAN.replace(microsecond=0) + timedelta(seconds=seconds)).astimezone(zone)
    fraction = f".{rest:09}".rstrip("0").rstrip(".")
    offset = moment.strftime("%z")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{'Z' if offset == '+0000' else f'{offset[:3]}:{offset[3:]}'}"


def existing(document: Document, uid: str, *, created: float = -3600.0) -> Document:
    """Return a server's object, created some seconds after the start of the recording."""
    moment = (BEGAN + timedelta(seconds=created)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {**part(document, "metadata"), "uid": uid, "resourceVersion": "1", "creationTimestamp": moment}
    return {**document, "metadata": metadata}


def line(since: float, event: str, document: Document, zone: timezone = TOKYO) -> str:
    """Return one line; that of a deletion has only name and namespace, which may be empty."""
    if event == "Delete":
        metadata = part(document, "metadata")
        names = {"name": metadata["name"], "namespace": metadata.get("namespace", "")}
        document = {"apiVersion": document["apiVersion"], "kind": document["kind"], "metadata": names}
    return json.dumps({"time": go_time(since, zone), "event": event, "resource": document}, separators=(",", ":"))


def namespace(name: str) -> Document:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def morning(zone: timezone = TOKYO) -> Sequence[str]:
    """Return the lines of a small recording.

    Two nodes and a pod that runs are there; a node says that it is well before the pods were listed. Then a pod comes and is bound,
    one that had run ends, the new one is deleted, and a node goes.
    """
    first, second = existing(node("n1"), "node-1"), existing(node("n2"), "node-2")
    runs = existing(pod("runs", node_name="n1"), "pod-1")
    late = existing(pod("late"), "pod-2", created=5.0)
    bound = existing(pod("late", node_name="n2"), "pod-2", created=5.0)
    well = {**first, "status": {**part(first, "status"), "nodeInfo": {"kubeletVersion": "v1.36.3"}}}
    rows = (
        (0.0, "Add", existing(namespace("default"), "ns-1")),
        (0.000_051, "Add", existing(namespace("kube-system"), "ns-2")),
        (0.101, "Add", first),
        (0.1009, "Add", second),  # Written after the one before it, although it was seen earlier.
        (0.15, "Update", well),
        (0.2, "Add", runs),
        (5.25, "Add", late),
        (5.5, "Update", bound),
        (7.0, "Update", {**runs, "status": {"phase": "Succeeded"}}),
        (9.000_000_5, "Delete", bound),
        (10.0, "Delete", second),
    )
    return [line(since, event, document, zone) for since, event, document in rows]


def write_morning(path: Path, zone: timezone = TOKYO) -> None:
    """Write that recording."""
    path.write_text("".join(f"{each}\n" for each in morning(zone)))
