"""The larger answers of the fake service: overview, one node, one pod, queue, timeline, configuration, plugins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.ui.fake_cluster import REASONS, FakeCluster, Plain, stamp
from tests.ui.fake_matrix import FILTERS, SCORERS

STATUSES = ("waiting", "gated", "placed")
TIERS = ("active", "backoff", "unschedulable", "gated")
TEXT = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
"""


def overview(cluster: FakeCluster) -> Plain:
    """Return the overview."""
    counts = cluster.counts()
    waiting = [pod for pod in cluster.pods if pod.status == "waiting"]
    reasons = Counter(REASONS[pod.reason][1] for pod in waiting).most_common()
    nodes = cluster.nodes
    usage: list[Plain] = []
    for zone in ["", *sorted({node.zone for node in nodes})]:
        chosen = [node for node in nodes if zone in ("", node.zone)]
        for name in ("cpu", "memory"):
            whole = sum(getattr(node, name) for node in chosen)
            used = sum(getattr(node, f"used_{name}") for node in chosen)
            gap = max((getattr(node, name) - getattr(node, f"used_{name}") for node in chosen if node.ready), default=0)
            usage.append(
                {
                    "resource": name,
                    "zone": zone,
                    "nodes": len(chosen),
                    "free": whole - used,
                    "allocatable": whole,
                    "requested": used,
                    "share": used / max(1, whole),
                    "largest_gap": gap,
                }
            )
    share = {str(each["resource"]): each["share"] for each in usage if not each["zone"]}
    newest = len(cluster.decisions)
    return {
        "version": str(cluster.version),
        "sentence": f"{len(waiting):,} of {len(cluster.pods):,} pods wait; {reasons[0][1]:,} for CPU: no node has 4 free CPUs"
        if waiting
        else f"All {len(cluster.pods):,} pods are placed",
        "counts": counts,
        "decisions": {"total": newest, "per_second": 512.0, "p99_ms": 3.1},
        "reasons": [{"text": text, "pods": pods, "mainly": pods} for text, pods in reasons],
        "queue": {**queue_counts(cluster), "next_retry_at": stamp()},
        "utilisation": usage,
        "utilisation_history": [
            {
                "at": stamp(cluster.began + 5 * at),
                "cpu": float(str(share["cpu"])) * (0.7 + at / 200),
                "memory": float(str(share["memory"])) * (0.9 + at % 7 / 70),
            }
            for at in range(60)
        ],
        "preemptions": 14,
        "binding_failures": 0,
        "latest": [cluster.decision(number) for number in range(newest - 1, max(-1, newest - 10), -1)],
        "clock": {"now": stamp(), "paused": False, "speed": 1, "mode": "virtual"},
        "source": None,
        "scheduler": {"profiles": ["default-scheduler"], "plugins_failed": []},
    }


def queue_counts(cluster: FakeCluster) -> Plain:
    """Return how many pods each tier has."""
    waiting = sum(pod.status == "waiting" for pod in cluster.pods)
    return {
        "active": min(12, waiting // 9),
        "backoff": waiting // 6,
        "unschedulable": waiting - waiting // 6 - min(12, waiting // 9),
        "gated": sum(pod.gated for pod in cluster.pods),
    }


def cells(cluster: FakeCluster, by: str) -> Plain:
    """Return the heat map."""
    groups: dict[str, list[int]] = {}
    for at, node in enumerate(cluster.nodes):
        groups.setdefault(node.pool if by == "pool" else node.zone, []).append(at)
    found = [
        {
            "name": name,
            "nodes": [cluster.nodes[at].name for at in rows],
            "cells": [cluster.nodes[at].cell for at in rows],
            "flags": [cluster.nodes[at].flags for at in rows],
        }
        for name, rows in sorted(groups.items())
    ]
    return {
        "version": cluster.version,
        "layout": cluster.layout,
        "metric": "cpu",
        "by": by,
        "metrics": ["cpu", "memory", "pods", "nvidia.com/gpu"],
        "groups": found,
    }


def node_document(cluster: FakeCluster, name: str) -> Plain | None:
    """Return one node."""
    node = cluster.by_name.get(name)
    if node is None:
        return None
    free = (node.cpu - node.used_cpu) / 1000
    pods = [cluster.pod_row(cluster.pods[number]) for number in node.pods]
    return {
        **cluster.node_row(node),
        "version": cluster.version,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        "sentence": f"{name} has {free:g} of {node.cpu // 1000} CPUs free; {len(node.pods)} pods run there",
        "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": node.zone, "pool": node.pool},
        "pods": pods,
        "pods_total": len(pods),
        "events": [
            {
                "type": "Normal",
                "reason": "Starting",
                "note": "kubelet started",
                "first_at": stamp(),
                "last_at": stamp(),
                "count": 1,
            }
        ],
        "rejected": [{"text": "Insufficient cpu", "pods": 14}],
        "rejected_is_exact": True,
        "rejected_missing": "",
    }


def pod_list(cluster: FakeCluster, query: Mapping[str, str]) -> Plain:
    """Return pods as the table asks for them."""
    offset, limit = int(query.get("offset", 0)), int(query.get("limit", 50))
    text, status, reason = query.get("q", "").lower(), query.get("status", ""), query.get("reason", "")
    found = [
        pod
        for pod in cluster.pods
        if text in pod.name.lower()
        and status in ("", pod.status)
        and (not reason or (pod.status == "waiting" and REASONS[pod.reason][1] == reason))
        and query.get("namespace", "") in ("", pod.namespace)
        and (not query.get("node") or (pod.node >= 0 and cluster.nodes[pod.node].name == query["node"]))
    ]
    sort = query.get("sort", "")
    if sort.lstrip("-") == "status":
        found.sort(key=lambda pod: STATUSES.index(pod.status), reverse=sort.startswith("-"))
    elif sort.lstrip("-") in ("attempts", "cpu", "memory", "priority", "name"):
        found.sort(key=lambda pod: getattr(pod, sort.lstrip("-")), reverse=sort.startswith("-"))
    page: Plain = {
        "version": cluster.version,
        "items": [cluster.pod_row(pod) for pod in found[offset : offset + limit]],
        "total": len(found),
        "total_is_exact": True,
        "offset": offset,
        "limit": limit,
    }
    if query.get("facets"):
        kinds = {
            "status": Counter(pod.status for pod in found),
            "namespace": Counter(pod.namespace for pod in found),
            "reason": Counter(REASONS[pod.reason][1] for pod in found if pod.status == "waiting"),
            "node": Counter(cluster.nodes[pod.node].name for pod in found[:50] if pod.node >= 0),
            "priority": Counter(str(pod.priority) for pod in found),
        }
        page["facets"] = {
            kind: [{"value": value, "count": count} for value, count in counter.most_common()]
            for kind, counter in kinds.items()
        }
    return page


def pod_document(cluster: FakeCluster, namespace: str, name: str) -> Plain | None:
    """Return one pod."""
    number = cluster.by_key.get(f"{namespace}/{name}")
    if number is None:
        return None
    pod = cluster.pods[number]
    row = cluster.pod_row(pod)
    total = len(cluster.nodes)
    waits = pod.node < 0
    rejected = [
        {"text": text, "plugin": plugin, "code": "Unschedulable", "nodes": max(1, total * part // 10)}
        for (plugin, text), part in zip(REASONS, (6, 2, 1, 1), strict=True)
    ]
    sentence = (
        f"{name} waits: none of {total:,} nodes fits; nearest is {cluster.nodes[0].name}, short of 0.8 CPU"
        if waits
        else f"{name} runs on {row['node']}: best of {total - total // 3:,} nodes that fit, {row['why']}"
    )
    base = cluster.decision(cluster.decisions.index(number)) if number in cluster.decisions else {}
    kept = range(1, pod.attempts + 1) if base else ()
    attempts = [
        {
            **base,
            "attempt": at,
            "outcome": "unschedulable" if waits or at < pod.attempts else "scheduled",
            "tier": "backoff" if at > 1 else "active",
            "woken_by": "Node/Add" if at > 1 else "",
            "difference": "12 nodes fewer fit" if at > 1 else "",
        }
        for at in kept
    ]
    return {
        "sentence": sentence,
        "short": sentence.removeprefix(f"{name} "),
        "message": str(base.get("message") or "") if waits else "",
        "status": pod.status,
        "pod": _pod_facts(row),
        "attempts": attempts,
        "rejections": rejected,
        "events": [
            {
                "type": "Warning" if waits else "Normal",
                "reason": "FailedScheduling" if waits else "Scheduled",
                "note": base.get("message") or f"Successfully assigned to {row['node']}",
                "first_at": stamp(),
                "last_at": stamp(),
                "count": pod.attempts,
            }
        ],
        "queue": {
            "namespace": namespace,
            "name": name,
            "position": 0,
            "priority": pod.priority,
            "attempts": pod.attempts,
            "message": "",
            "tier": "unschedulable",
            "since": stamp(),
            "retry_at": None,
            "rejected_by": ["NodeResourcesFit"],
            "wakes_on": ["Node/Add", "Pod/Delete"],
        }
        if waits
        else None,
        "deleted": False,
        "manifest": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}},
        "manifest_text": f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: {namespace}\n",
    }


def _pod_facts(row: Plain) -> Plain:
    facts = {name: value for name, value in row.items() if name not in ("status", "why", "attempts")}
    return facts | {
        "uid": f"uid-{row['name']}",
        "priority_class": "",
        "qos": "Burstable",
        "phase": "Running" if row["node"] else "Pending",
        "requests": {"cpu": row["cpu"], "memory": row["memory"]},
        "nominated_node": "",
        "imported": False,
        "bound_at": None,
        "ended_at": None,
        "labels": {"app": str(row["name"]).partition("-")[0]},
    }


def listed(items: list[Plain]) -> Plain:
    """Return a list that is one page."""
    return {"items": items, "total": len(items), "total_is_exact": True, "offset": 0, "limit": len(items)}


def report(cluster: FakeCluster) -> Plain:
    """Return a search for victims."""
    victims = [
        {"pod": f"{pod.namespace}/{pod.name}", "priority": pod.priority, "started_ns": 0} for pod in cluster.pods[:3]
    ]
    candidates = [
        {
            "node": node.name,
            "chosen": at == 0,
            "victims": victims[: at + 1],
            "pdb_violations": at,
            "priority_sum": 1000 * at,
            "lost_by": "" if at == 0 else "more violated budgets",
        }
        for at, node in enumerate(cluster.nodes[:3])
    ]
    refusals = [
        {
            "plugin": "TaintToleration",
            "code": "UnschedulableAndUnresolvable",
            "reasons": [REASONS[1][1]],
            "nodes": [],
            "count": 4,
        }
    ]
    return {
        "attempt": 1,
        "chosen": cluster.nodes[0].name,
        "candidates": candidates,
        "candidate_count": 3,
        "refusals": refusals,
        "struck_out": [],
        "untried": 0,
        "not_helpful": 4,
    }


def queue(cluster: FakeCluster, query: Mapping[str, str]) -> Plain:
    """Return a tier of the queue."""
    tier = query.get("tier") or "active"
    counts = queue_counts(cluster)
    waiting = [pod for pod in cluster.pods if pod.status == "waiting"]
    first = {
        "active": 0,
        "backoff": int(str(counts["active"])),
        "unschedulable": int(str(counts["active"])) + int(str(counts["backoff"])),
    }
    chosen = (
        [pod for pod in cluster.pods if pod.gated]
        if tier == "gated"
        else waiting[first[tier] : first[tier] + int(str(counts[tier]))]
    )
    offset, limit = int(query.get("offset", 0)), int(query.get("limit", 50))
    items = [
        {
            "namespace": pod.namespace,
            "name": pod.name,
            "priority": pod.priority,
            "attempts": pod.attempts,
            "tier": tier,
            "since": stamp(cluster.began + 90),
            "position": offset + at,
            "message": "",
            "retry_at": stamp(cluster.began + 425 + at) if tier == "backoff" else None,
            "rejected_by": ["SchedulingGates"] if pod.gated else [REASONS[pod.reason][0]],
            "wakes_on": ["Node/Add", "Pod/Delete"],
        }
        for at, pod in enumerate(chosen[offset : offset + limit])
    ]
    sentence = f"{counts['backoff']} in backoff; {counts['unschedulable']} unschedulable; {counts['gated']} gated"
    return {
        "version": cluster.version,
        "counts": counts,
        "sentence": sentence,
        "next_retry_at": stamp(),
        "items": items,
        "total": len(chosen),
        "total_is_exact": True,
        "offset": offset,
        "limit": limit,
        "histogram": {"seconds": [1, 10, 60, 300], "pods": [2, 5, 11, len(waiting) // 3, len(waiting) // 2]},
    }


def density(cluster: FakeCluster, query: Mapping[str, str]) -> Plain:
    """Return how many decisions of each kind there were, in equal parts."""
    newest = len(cluster.decisions) - 1
    low, high = int(query.get("from") or 0), min(newest, int(query.get("to") or newest))
    bins = int(query.get("bins") or 200)
    lanes = {name: [0] * bins for name in ("scheduled", "waits", "error", "preemptions", "nodes")}
    for number in range(low, high + 1):
        pod = cluster.pods[cluster.decisions[number]]
        at = (number - low) * bins // max(1, high - low + 1)
        lanes["scheduled" if pod.node >= 0 else "waits"][at] += 1
        if number % 997 == 99:
            lanes["preemptions"][at] += 1
        if number % 611 == 40:
            lanes["nodes"][at] += 1
    return {
        "from": low,
        "to": high,
        "oldest": 0,
        "newest": newest,
        "from_at": stamp(cluster.began),
        "to_at": stamp(),
        "bins": bins,
        "lanes": lanes,
        "numbers": [low + at * (high - low + 1) // bins for at in range(bins)],
    }


def config() -> Plain:
    """Return a configuration."""
    points = {
        "filter": [{"plugin": name, "weight": 0, "from": "default"} for name in FILTERS],
        "score": [{"plugin": name, "weight": weight, "from": "default"} for name, weight in SCORERS],
    }
    return {
        "text": TEXT,
        "effective": {},
        "extension_points": {"default-scheduler": {"pre_filter": points["filter"][:6], **points}},
    }


def plugins() -> Plain:
    """Return a list of one plugin."""
    plugin: Plain = {
        "name": "NodeResourcesFit",
        "points": ["filter", "score"],
        "enabled": ["filter", "score"],
        "file": None,
        "built_in": True,
        "failures": [],
        "documentation": None,
    }
    return listed([plugin])


def root(instance: str) -> Plain:
    """Return who answers."""
    return {
        "version": "0.1",
        "kubernetes_version": "v1.36.3",
        "build": "uncompiled",
        "links": {},
        "instance": instance,
        "started_at": stamp(),
    }
