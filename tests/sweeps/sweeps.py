"""The cluster and the sweep of the tests of `bayplan.sweeps`, and the rows of a table of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

CLUSTER = """\
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}
---
apiVersion: v1
kind: Pod
metadata: {name: small-1, annotations: {bayplan.io/run-time: 1h}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1", memory: 2Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: small-2, annotations: {bayplan.io/run-time: 1h}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1", memory: 2Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: large, annotations: {bayplan.io/run-time: 10m}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "4"}}}]}
"""
STRATEGY = "args.NodeResourcesFit.scoringStrategy.type"
PACKED, SPREAD = "MostAllocated", "LeastAllocated"
SWEEP = f"""\
paths: [cluster.yaml]
parameters:
  {STRATEGY}: [{SPREAD}, {PACKED}]
  weight.NodeResourcesFit: [1, 100]
seeds: [1, 2]
"""


def rows(folder: Path) -> list[dict[str, Any]]:
    table = pq.read_table(folder / "trials.parquet").drop_columns(["seconds"])
    found: list[dict[str, Any]] = table.to_pylist()
    return found
