"""The files of a result directory and their columns, shared by the writer and the reader.

The files depend only on input, configuration and seed: the same run writes the same bytes (with the same release of
PyArrow). Times are nanoseconds of virtual time since 1970; amounts are in units of the state: milli-CPU, bytes, counts.

- ``summary.json``: the facts of the report (`bayplan.analysis.run_facts.RunFacts`). Its presence marks a result
  directory.
- ``decisions.parquet``: one row per cycle, in order.
- ``pods.parquet``: one row per pod, its timeline. ``templates.parquet``: the distinct pod specs, as JSON.
- ``nodes.parquet``, ``usage.parquet``, ``events.parquet``: nodes, usage by resource and zone, Kubernetes events.
- ``objects.parquet``: the objects at the end that are neither nodes nor pods: volumes, claims, budgets, workloads.
- ``scaling.parquet``, ``descheduled.parquet``: the actions of an autoscaler and a descheduler, if they ran.
- ``timeline.parquet``: each pod's moves through the scheduling queue (`bayplan.sim.traced_queue.QueueMove`), if
  recorded.
- ``records/``: full records, if the run has them. A keyframe contains all plugin results of a plan for all rows
  (nodes), and then the results of rows that changed later (see `bayplan.engine.keyframe`). Reasons are stored as texts
  and normalised scores as tables by raw score, so that no plugin is needed to read them:

  - ``frames.parquet``: one row per recorded cycle: its keyframe, the number of changes that precede it, tie set, overrides;
    as JSON the results of extenders (`bayplan.engine.extenders`) and of the search for victims
    (`bayplan.framework.preemption.account`).
  - ``keyframes.parquet``: the nodes of the rows, the rows that filters ran on, and the rows that changed later.
  - ``parts.parquet``: per keyframe and plugin, the verdicts or raw scores of all rows (a single value if all are equal),
    then those of the changes (none if placements can't change them).
  - ``reasons.parquet``: the status of each verdict.
  - ``normalizations.parquet``: normalised scores by raw score; by row if they depend on more than the raw score.
  - ``node_sets.parquet``: node names by row, and the order in which a search visits them.

Missing texts are empty; missing numbers and lists are null.
"""

from __future__ import annotations

import pyarrow as pa

SUMMARY = "summary.json"
RECORDS = "records"

_TEXTS = pa.list_(pa.string())
_NUMBERS = pa.list_(pa.int64())
_AMOUNTS = pa.map_(pa.string(), pa.int64())
_STATUS = pa.struct([("code", pa.string()), ("plugin", pa.string()), ("reasons", _TEXTS)])

DECISIONS = pa.schema(
    [
        ("time_ns", pa.int64()),
        ("pod", pa.string()),
        ("attempt", pa.int32()),
        ("outcome", pa.string()),
        ("node", pa.string()),
        ("feasible_nodes", pa.int32()),
        ("evaluated_nodes", pa.int32()),
        ("ties", pa.int32()),
        ("total", pa.int64()),
        ("message", pa.string()),
        ("nominated_node", pa.string()),
        ("victims", _TEXTS),
        ("frame", pa.int32()),
    ]
)

PODS = pa.schema(
    [
        ("pod", pa.string()),
        ("uid", pa.string()),
        ("workload", pa.string()),
        ("priority", pa.int32()),
        ("scheduler_name", pa.string()),
        ("arrived_ns", pa.int64()),
        ("bound_ns", pa.int64()),
        ("started_ns", pa.int64()),
        ("ended_ns", pa.int64()),
        ("node", pa.string()),
        ("imported", pa.bool_()),
        ("attempts", pa.int32()),
        ("last_failure_ns", pa.int64()),
        ("message", pa.string()),
        ("fate", pa.string()),
        ("requests", _AMOUNTS),
        ("template", pa.int32()),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("disruption", pa.string()),
    ]
)

TEMPLATES = pa.schema([("template", pa.int32()), ("spec", pa.string())])

NODES = pa.schema(
    [
        ("node", pa.string()),
        ("zone", pa.string()),
        ("added_ns", pa.int64()),
        ("removed_ns", pa.int64()),
        ("allocatable", _AMOUNTS),
        ("requested", _AMOUNTS),
        ("object", pa.string()),
        ("group", pa.string()),
        ("price", pa.float64()),
    ]
)

USAGE = pa.schema(
    [
        ("resource", pa.string()),
        ("zone", pa.string()),
        ("nodes", pa.int32()),
        ("allocatable", pa.int64()),
        ("requested", pa.int64()),
        ("share", pa.float64()),
        ("mean_share", pa.float64()),
        ("peak_share", pa.float64()),
        ("peak_requested", pa.int64()),
        ("peak_ns", pa.int64()),
    ]
)

EVENTS = pa.schema(
    [
        ("pod", pa.string()),
        ("type", pa.string()),
        ("reason", pa.string()),
        ("action", pa.string()),
        ("note", pa.string()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
        ("count", pa.int32()),
    ]
)

OBJECTS = pa.schema([("kind", pa.string()), ("namespace", pa.string()), ("name", pa.string()), ("object", pa.string())])

FRAMES = pa.schema(
    [
        ("frame", pa.int32()),
        ("keyframe", pa.int32()),
        ("changes", pa.int32()),
        ("scored", pa.bool_()),
        ("normalizations", pa.list_(pa.int32())),
        ("overrides", pa.list_(pa.struct([("row", pa.int32()), ("filter", pa.int32()), ("verdict", pa.int32())]))),
        ("ties", pa.list_(pa.int32())),
        ("pre_filter", _STATUS),
        ("only", pa.int32()),
        ("sample", pa.list_(pa.int32())),
        ("extenders", pa.string()),
        ("preemption", pa.string()),
        ("check_all", pa.bool_()),
    ]
)

KEYFRAMES = pa.schema(
    [
        ("keyframe", pa.int32()),
        ("node_set", pa.int32()),
        ("examined", pa.list_(pa.bool_())),
        ("absent", _STATUS),
        ("floor", pa.int64()),
        ("rows", pa.list_(pa.int32())),
    ]
)

PARTS = pa.schema(
    [
        ("keyframe", pa.int32()),
        ("kind", pa.string()),
        ("number", pa.int32()),
        ("plugin", pa.string()),
        ("weight", pa.int64()),
        ("values", _NUMBERS),
        ("changes", _NUMBERS),
    ]
)

REASONS = pa.schema(
    [
        ("keyframe", pa.int32()),
        ("filter", pa.int32()),
        ("verdict", pa.int32()),
        ("code", pa.string()),
        ("reasons", _TEXTS),
    ]
)

NORMALIZATIONS = pa.schema([("normalization", pa.int32()), ("raw", _NUMBERS), ("normalized", _NUMBERS)])

NODE_SETS = pa.schema([("node_set", pa.int32()), ("row", pa.int32()), ("node", pa.string()), ("visit", pa.int32())])

TIMELINE = pa.schema(
    [
        ("time_ns", pa.int64()),
        ("pod", pa.string()),
        ("uid", pa.string()),
        ("source", pa.string()),
        ("target", pa.string()),
        ("attempt", pa.int32()),
        ("cause", pa.string()),
        ("plugins", _TEXTS),
        ("backoff_end_ns", pa.int64()),
        ("note", pa.string()),
    ]
)

SCALING = pa.schema(
    [
        ("time_ns", pa.int64()),
        ("kind", pa.string()),
        ("group", pa.string()),
        ("nodes", _TEXTS),
        ("pods", _TEXTS),
        ("reason", pa.string()),
    ]
)

DESCHEDULED = pa.schema([("time_ns", pa.int64()), ("pod", pa.string()), ("node", pa.string()), ("plugin", pa.string())])

TABLES = {
    "decisions": DECISIONS,
    "pods": PODS,
    "templates": TEMPLATES,
    "nodes": NODES,
    "usage": USAGE,
    "events": EVENTS,
    "objects": OBJECTS,
}
"""The tables of every result; their files are named ``NAME.parquet``."""

OPTIONAL_TABLES = {"timeline": TIMELINE, "scaling": SCALING, "descheduled": DESCHEDULED}
"""Tables that only some results have."""

OPTIONS = {"timeline": "--timeline", "scaling": "--autoscaler FILE", "descheduled": "--descheduler FILE"}
"""The options of ``simulate`` that write the optional tables."""

RECORD_TABLES = {
    "frames": FRAMES,
    "keyframes": KEYFRAMES,
    "parts": PARTS,
    "reasons": REASONS,
    "normalizations": NORMALIZATIONS,
    "node_sets": NODE_SETS,
}
"""Tables of full records, in the folder ``records``."""

FILTER = "filter"
SCORE = "score"
"""The kinds of rows in ``parts.parquet``."""
