"""Write files as kube-scheduler-simulator's recorder does, with invented content.

By its source, the recorder starts one informer for each kind, in this order: namespaces, priority classes, storage
classes, claims, nodes, volumes, pods; each one starts when the list of the previous one has arrived. Each addition,
update and deletion is written when the informer reports it, with the local time in nanoseconds. Deletions have only the
object's name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from bayplan.base.plain_data import Document, part
from tests.sync.follower_fixture import node, pod

BEGAN = datetime(2026, 4, 28, 10, 0, 0, 957176, UTC)
TOKYO = timezone(timedelta(hours=9))


def go_time(since: float, zone: timezone = TOKYO) -> str:
    """Return a time, given in seconds since the start of the recording, in Go's format, without trailing zeros."""
    nanoseconds = BEGAN.microsecond * 1000 + 231 + round(since * 1e9)
    seconds, rest = divmod(nanoseconds, 10**9)
    moment = (BEGAN.replace(microsecond=0) + timedelta(seconds=seconds)).astimezone(zone)
    fraction = f".{rest:09}".rstrip("0").rstrip(".")
    offset = moment.strftime("%z")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{'Z' if offset == '+0000' else f'{offset[:3]}:{offset[3:]}'}"


def existing(document: Document, uid: str, *, created: float = -3600.0) -> Document:
    """Return an object as a server has it, created `created` seconds after the start of the recording."""
    moment = (BEGAN + timedelta(seconds=created)).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {**part(document, "metadata"), "uid": uid, "resourceVersion": "1", "creationTimestamp": moment}
    return {**document, "metadata": metadata}


def line(since: float, event: str, document: Document, zone: timezone = TOKYO) -> str:
    """Return one line of a recording; in deletions the object has only a name and a namespace, which may be empty."""
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

    Two nodes and a running pod exist at the start. A node's status is updated before the list of pods. Then a pod is
    created and bound, the pod that ran finishes, the new pod is deleted, and a node is deleted.
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
    """Write the recording of `morning` to a file."""
    path.write_text("".join(f"{each}\n" for each in morning(zone)))
