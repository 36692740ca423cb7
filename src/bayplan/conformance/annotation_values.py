"""The values of recorded result annotations that can be compared with Bayplan's, and the matching attempt.

The recorded scheduler is 1.32, Bayplan's is 1.36: texts and plugins that have changed since are normalized here. The
recording program has its own bugs, listed under "Quirks" in `conformance/annotations/README.md`; the affected values
are ignored. It also retries failed pods more often than a plain scheduler, so several recorded attempts may match one
of Bayplan's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from bayplan.conformance.cases import Json, JsonObject
from bayplan.formats.result_annotations import HISTORY, PASSED, PREFIX, SELECTED_NODE

ADDED_SINCE = ("DynamicResources", "NodeDeclaredFeatures")
"""Plugins of the default profile that 1.32 did not have."""

RESCORED_SINCE = ("NodeResourcesBalancedAllocation",)
"""Plugins whose formula has changed since, and that now skip different pods in PreScore."""

CHANGED_TEXTS = (
    (
        re.compile(r"node\(s\) had volume node affinity conflict"),
        "node(s) didn't match PersistentVolume's node affinity",
    ),
    (re.compile(r"untolerated taint \{[^}]*\}"), "untolerated taint(s)"),
    (
        re.compile("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"),
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    ),
    # The simulator's prefix for the plugins that it wraps.
    (re.compile(r"(?<=\w)Wrapped\b"), ""),
)

SCORING = ("prescore-result", "score-result", "finalscore-result")
"""Annotation keys with results of scoring plugins."""

ROWS = ("filter-result", "postfilter-result", "score-result", "finalscore-result")
"""Annotation keys with a row for each node."""

Attempt = dict[str, Json]


def comparable_annotation_parts(record: JsonObject, answer: JsonObject) -> Iterator[tuple[str, Json, Json]]:
    """Yield each comparable value: its key, then the recorded values and Bayplan's by pod and attempt.

    Args:
        record: the recorded scenario.
        answer: Bayplan's answer, with ``attempts``.
    """
    ours = cast("dict[str, list[dict[str, str]]]", answer.get("attempts") or {})
    merged = cast("list[str]", record.get("merged_rows") or [])
    shows_weights = _shows_weights(cast("JsonObject", record["config"]))
    for pod, recorded in cast("dict[str, dict[str, str]]", record["annotations"]).items():
        history = msgspec.json.decode(recorded.get(HISTORY, "[]"), type=list[dict[str, str]])
        found = [_attempt(entry) for entry in ours.get(pod, [])]
        first = 0
        for number, entry in enumerate(history):
            want = _attempt(entry)
            left_out = {"finalscore-result"} - ({"finalscore-result"} if shows_weights else set())
            if pod in merged and want["selected-node"]:
                left_out.add("postfilter-result")
            want = {key: value for key, value in want.items() if key not in left_out}
            first, got = _nearest(want, found, first)
            for key, value in want.items():
                at = f"{pod} attempt {number}"
                yield key, {at: value}, {at: _without_overwritten(key, value, got.get(key), entry)}


def _nearest(want: Attempt, found: Sequence[Attempt], first: int) -> tuple[int, Attempt]:
    """Return the number and the values of Bayplan's attempt, from number `first` on, that differs in the fewest values."""
    best = min(
        range(first, len(found)),
        key=lambda number: sum(found[number].get(key) != value for key, value in want.items()),
        default=first,
    )
    return best, found[best] if best < len(found) else {}


def _shows_weights(config: JsonObject) -> bool:
    """Return whether final scores show the actual weights: only if one profile sets them in ``multiPoint``."""
    profiles = cast("list[JsonObject]", config.get("profiles") or [])
    plugins = [cast("JsonObject", profile.get("plugins") or {}) for profile in profiles]
    return len(profiles) < 2 and not any("score" in each for each in plugins)


def _attempt(entry: dict[str, str]) -> Attempt:
    """Return the values of an attempt by key, without the prefix, normalized for both releases."""
    return {
        key.removeprefix(PREFIX): text if key == SELECTED_NODE else _value(key.removeprefix(PREFIX), text)
        for key, text in entry.items()
        if key.startswith(PREFIX) and key != HISTORY
    }


def _value(key: str, text: str) -> Json:
    for pattern, replacement in CHANGED_TEXTS:
        text = pattern.sub(replacement, text)
    value = cast("JsonObject", msgspec.json.decode(text))
    left_out = ADDED_SINCE + (RESCORED_SINCE if key in SCORING else ())

    def bare(cells: JsonObject) -> JsonObject:
        return {plugin: _sorted(cell) for plugin, cell in cells.items() if plugin not in left_out}

    return {node: bare(cast("JsonObject", row)) for node, row in value.items()} if key in ROWS else bare(value)


def _sorted(cell: Json) -> Json:
    """Return a list of names sorted, because it is a set; return other cells unchanged."""
    return cast("Json", sorted(cast("list[str]", cell))) if isinstance(cell, list) and not _is_scores(cell) else cell


def _is_scores(cell: list[Json]) -> bool:
    return any(isinstance(each, dict) for each in cell)


def _without_overwritten(key: str, want: Json, got: Json, entry: dict[str, str]) -> Json:
    """Return Bayplan's filter rows, but the recorded row of each node whose row the recorded dry run of preemption overwrote."""
    if key != "filter-result" or entry.get(SELECTED_NODE) or not isinstance(want, dict) or not isinstance(got, dict):
        return got
    rows = cast("dict[str, JsonObject]", want)
    overwritten = {node: row for node, row in rows.items() if row and all(text == PASSED for text in row.values())}
    return {node: overwritten.get(node, row) for node, row in got.items()}
