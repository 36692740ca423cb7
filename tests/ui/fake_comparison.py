"""One pod in two runs of the made-up cluster: the second one's NodeResourcesFit likes full nodes."""

from __future__ import annotations

from typing import Any

from tests.ui.fake_cluster import FakeCluster, Plain
from tests.ui.fake_matrix import SCORERS, matrix

FIT = [name for name, _ in SCORERS].index("NodeResourcesFit")


def pod_comparison(cluster: FakeCluster, namespace: str, name: str) -> Plain | None:
    """Return both matrices of a pod, and the plugin that decided otherwise."""
    ours, theirs = matrix(cluster, namespace, name), matrix(cluster, namespace, name)
    if ours is None or theirs is None:
        return None
    _pack(theirs)
    first = {"name": "NodeResourcesFit", "a": 12, "b": -31} if ours["winner"] != theirs["winner"] else None
    return {
        "pod": f"{namespace}/{name}",
        "a_node": ours["winner"],
        "b_node": theirs["winner"],
        "decisive_plugin": first,
        "a": {"name": "now", "matrix": ours},
        "b": {"name": "packed", "matrix": theirs},
    }


def _pack(reported: dict[str, Any]) -> None:
    """Turn the points for free room into points for none, and put the rows in their new order."""
    rows = reported["rows"]
    for at, total in enumerate(rows["total"]):
        if total is None:
            continue
        points = 100 - rows["normalized"][at][FIT]
        for name in ("raw", "normalized", "weighted"):
            rows[name][at] = [*rows[name][at][:FIT], points, *rows[name][at][FIT + 1 :]]
        rows["total"][at] = sum(rows["weighted"][at])
    order = sorted(range(len(rows["node"])), key=lambda at: (-(rows["total"][at] or -1), rows["node"][at]))
    reported["rows"] = {name: [values[at] for at in order] for name, values in rows.items()}
    if reported["winner"]:
        reported["winner"], reported["runner_up"] = reported["rows"]["node"][:2]
        reported["tie_set"] = reported["rows"]["node"][:1]
        reported["rows"]["tie"] = [at == 0 for at in range(len(order))]
