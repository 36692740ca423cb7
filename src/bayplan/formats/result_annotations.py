"""The annotations in which kube-scheduler-simulator stores a pod's scheduling results: types, encoding and decoding.

Every value is JSON as Go writes it; `result-history` contains the values of all attempts again. The format is that of
kubernetes-sigs/kube-scheduler-simulator (simulator/scheduler/plugin/resultstore), so that its tools can read Bayplan's
results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.go_text.json import go_json

PREFIX = "kube-scheduler-simulator.sigs.k8s.io/"
EARLIER_PREFIX = "scheduler-simulator/"
"""The prefix used by kube-scheduler-simulator before v0.4.0; read, but never written."""

SELECTED_NODE = PREFIX + "selected-node"
HISTORY = PREFIX + "result-history"

PASSED = "passed"
"""The message of a filter that accepts a node."""

SUCCESS = "success"
"""The message of a plugin that succeeded. The message of a plugin that returned Skip is empty."""

TOTAL_SIZE_LIMIT = 256 * 1024
"""Maximum total size of an object's annotations (keys and values) in bytes, as in Kubernetes (TotalAnnotationSizeLimitB)."""

CLOSE_ENOUGH = 64
"""Precision: up to 1/64 of the nodes may be left out although they would fit, because finding the exact number is slow."""

PluginTexts = dict[str, str]
NodeTexts = dict[str, PluginTexts]
NodeScores = dict[str, dict[str, int]]
Result = TypeVar("Result")


class ExtenderFilterResult(msgspec.Struct, frozen=True):
    """The response of an extender to a filter request.

    Attributes:
        nodes: the node objects as JSON; null if names are used.
        node_names: the names of the nodes that passed.
        failed_nodes, failed_and_unresolvable_nodes: the reasons by node.
        error: the error, or "".
    """

    nodes: msgspec.Raw = msgspec.field(name="Nodes", default=msgspec.Raw(b"null"))
    node_names: list[str] | None = msgspec.field(name="NodeNames", default=None)
    failed_nodes: dict[str, str] | None = msgspec.field(name="FailedNodes", default=None)
    failed_and_unresolvable_nodes: dict[str, str] | None = msgspec.field(
        name="FailedAndUnresolvableNodes", default=None
    )
    error: str = msgspec.field(name="Error", default="")


class HostPriority(msgspec.Struct, frozen=True):
    """An extender's score for a node."""

    host: str = msgspec.field(name="Host")
    score: int = msgspec.field(name="Score")


@dataclass(frozen=True, kw_only=True)
class ExtenderResults:
    """The responses of extenders, by their `urlPrefix`.

    Attributes:
        filter, prioritize: the responses; scores are already multiplied by the extender's weight and by 10.
        preempt, bind: the responses as JSON.
    """

    filter: dict[str, ExtenderFilterResult] = field(default_factory=dict)
    prioritize: dict[str, list[HostPriority]] = field(default_factory=dict)
    preempt: dict[str, msgspec.Raw] = field(default_factory=dict)
    bind: dict[str, msgspec.Raw] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SchedulingResults:
    """The results of one attempt.

    Attributes:
        pre_filter_status: text by plugin, for the plugins that were called.
        pre_filter: by plugin, the nodes that it allows.
        filter: text by node and plugin, up to the first plugin that rejected the node.
        post_filter: text by node and plugin.
        pre_score: text by plugin.
        score: raw scores by node and plugin.
        final_score: normalised scores times weights, by node and plugin.
        reserve, permit, permit_timeout, pre_bind, bind: text by plugin.
        selected_node: the chosen node, or "".
        extenders: the responses of extenders; None if the configuration has none.
    """

    pre_filter_status: PluginTexts = field(default_factory=dict)
    pre_filter: dict[str, list[str]] = field(default_factory=dict)
    filter: NodeTexts = field(default_factory=dict)
    post_filter: NodeTexts = field(default_factory=dict)
    pre_score: PluginTexts = field(default_factory=dict)
    score: NodeScores = field(default_factory=dict)
    final_score: NodeScores = field(default_factory=dict)
    reserve: PluginTexts = field(default_factory=dict)
    permit: PluginTexts = field(default_factory=dict)
    permit_timeout: PluginTexts = field(default_factory=dict)
    pre_bind: PluginTexts = field(default_factory=dict)
    bind: PluginTexts = field(default_factory=dict)
    selected_node: str = ""
    extenders: ExtenderResults | None = None

    def restricted(self, nodes: Sequence[str]) -> SchedulingResults:
        """Return the results with the entries of only these nodes."""
        kept = frozenset(nodes)
        return replace(
            self,
            filter=_rows(self.filter, kept),
            post_filter=_rows(self.post_filter, kept),
            score=_rows(self.score, kept),
            final_score=_rows(self.final_score, kept),
        )


def _rows(table: Mapping[str, Result], kept: frozenset[str]) -> dict[str, Result]:
    return {node: row for node, row in table.items() if node in kept}


# --- texts ------------------------------------------------------------------------------------------------------------

_TEXTS = {
    "pre_filter_status": "prefilter-result-status",
    "pre_filter": "prefilter-result",
    "filter": "filter-result",
    "post_filter": "postfilter-result",
    "pre_score": "prescore-result",
    "reserve": "reserve-result",
    "permit": "permit-result",
    "permit_timeout": "permit-result-timeout",
    "pre_bind": "prebind-result",
    "bind": "bind-result",
}
_SCORES = {"score": "score-result", "final_score": "finalscore-result"}
_EXTENDERS = {
    "filter": "extender-filter-result",
    "prioritize": "extender-prioritize-result",
    "preempt": "extender-preempt-result",
    "bind": "extender-bind-result",
}


def encode(results: SchedulingResults) -> dict[str, str]:
    """Return all annotations of one attempt except the history, by full key and sorted by key."""
    found = {PREFIX + key: go_json(getattr(results, name)) for name, key in _TEXTS.items()}
    for name, key in _SCORES.items():
        rows: NodeScores = getattr(results, name)
        found[PREFIX + key] = go_json(
            {node: {it: str(score) for it, score in row.items()} for node, row in rows.items()}
        )
    if results.extenders is not None:
        for name, key in _EXTENDERS.items():
            found[PREFIX + key] = go_json(getattr(results.extenders, name))
    found[SELECTED_NODE] = results.selected_node
    return dict(sorted(found.items()))


def decode(annotations: Mapping[str, str]) -> SchedulingResults:
    """Decode the annotations of a pod, or an entry of its history. Missing keys count as empty.

    Raises:
        InputError: a value does not have the format of its key.
    """

    def read(key: str, wanted: type[Result], *, strict: bool = True) -> Result:
        text = annotations.get(PREFIX + key, "{}")
        try:
            return msgspec.json.decode(text, type=wanted, strict=strict)
        except (msgspec.DecodeError, UnicodeEncodeError) as problem:
            raise InputError(f"annotation {PREFIX}{key}", got=str(problem), wanted="the result of an attempt") from None

    extenders = None
    if any(PREFIX + key in annotations for key in _EXTENDERS.values()):
        extenders = ExtenderResults(
            filter=read(_EXTENDERS["filter"], dict[str, ExtenderFilterResult]),
            prioritize=read(_EXTENDERS["prioritize"], dict[str, list[HostPriority]]),
            preempt=read(_EXTENDERS["preempt"], dict[str, msgspec.Raw]),
            bind=read(_EXTENDERS["bind"], dict[str, msgspec.Raw]),
        )
    return SchedulingResults(
        pre_filter_status=read(_TEXTS["pre_filter_status"], PluginTexts),
        pre_filter=read(_TEXTS["pre_filter"], dict[str, list[str]]),
        filter=read(_TEXTS["filter"], NodeTexts),
        post_filter=read(_TEXTS["post_filter"], NodeTexts),
        pre_score=read(_TEXTS["pre_score"], PluginTexts),
        score=read(_SCORES["score"], NodeScores, strict=False),
        final_score=read(_SCORES["final_score"], NodeScores, strict=False),
        reserve=read(_TEXTS["reserve"], PluginTexts),
        permit=read(_TEXTS["permit"], PluginTexts),
        permit_timeout=read(_TEXTS["permit_timeout"], PluginTexts),
        pre_bind=read(_TEXTS["pre_bind"], PluginTexts),
        bind=read(_TEXTS["bind"], PluginTexts),
        selected_node=annotations.get(SELECTED_NODE, ""),
        extenders=extenders,
    )


def has_results(annotations: Mapping[str, str]) -> bool:
    """Return whether annotations contain the results of an attempt, with the current or the earlier prefix."""
    keys = ("filter-result", "prefilter-result-status", "result-history")
    return bool(annotations) and any(prefix + key in annotations for prefix in (PREFIX, EARLIER_PREFIX) for key in keys)


def renamed(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return annotations with the current prefix instead of the earlier one, also in the history.

    Raises:
        InputError: the history can't be read.
    """
    if not any(key.startswith(EARLIER_PREFIX) for key in annotations):
        return annotations
    earlier = {PREFIX + key.removeprefix(EARLIER_PREFIX): text for key, text in _of_earlier(annotations)}
    if HISTORY in earlier:
        history = [renamed(entry) for entry in history_of(earlier)]
        earlier[HISTORY] = go_json(history)
    return {**earlier, **{key: text for key, text in annotations.items() if not key.startswith(EARLIER_PREFIX)}}


def _of_earlier(annotations: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(key, text) for key, text in annotations.items() if key.startswith(EARLIER_PREFIX)]


# --- the history, and the size limit ----------------------------------------------------------------------------------


def history_of(annotations: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the attempts in a pod's history, the oldest first, each as its annotations.

    Raises:
        InputError: the history has the wrong format.
    """
    text = annotations.get(HISTORY, "[]")
    try:
        return msgspec.json.decode(text, type=list[dict[str, str]])
    except msgspec.DecodeError as problem:
        raise InputError(f"annotation {HISTORY}", got=str(problem), wanted="a JSON list of attempts") from None


def size_of(annotations: Mapping[str, str]) -> int:
    """Return the size of annotations in bytes, as the sum over all keys and values."""
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())


class Written(msgspec.Struct, frozen=True):
    """A pod's annotations with results, reduced to the size limit.

    Attributes:
        annotations: the new annotations by full key, including the history.
        left_out_nodes: the number of nodes whose results do not fit.
        left_out_attempts: the number of attempts that the history lacks, including the newest one if it does not fit.
    """

    annotations: dict[str, str]
    left_out_nodes: int = 0
    left_out_attempts: int = 0


def write(
    results: SchedulingResults,
    present: Mapping[str, str],
    *,
    by_interest: Callable[[], Sequence[str]],
    limit: int = TOTAL_SIZE_LIMIT,
) -> Written:
    """Return the annotations to write on a pod, reduced so that all of its annotations stay within the limit.

    If they don't fit, first old attempts are removed from the history, then results of nodes (the least interesting
    first), then the history itself. Annotations of other writers are never changed.

    Args:
        results: the results of the newest attempt.
        present: all current annotations of the pod, including those of earlier attempts.
        by_interest: returns the names of all nodes with results, the most interesting first; called only if not all
            fit.
        limit: the limit in bytes.

    Raises:
        InputError: the pod's other annotations leave no room, not even for empty results.
    """
    free = limit - size_of({key: value for key, value in present.items() if not key.startswith(PREFIX)})
    earlier = history_of(present)
    newest = encode(results)
    if (found := _with_history(newest, earlier, free)) is not None:
        return found
    nodes = list(by_interest())
    fewest, newest = _most_that_fit(results, nodes, newest, free)
    found = _with_history(newest, (), free)
    if found is not None:
        return Written(found.annotations, len(nodes) - fewest, len(earlier))
    bare = {**newest, HISTORY: "[]"}
    if size_of(bare) > free:
        raise InputError(f"annotations: {limit - free} of {limit} bytes are in use, so no result fits")
    return Written(bare, len(nodes) - fewest, len(earlier) + 1)


def _with_history(newest: dict[str, str], earlier: Sequence[dict[str, str]], free: int) -> Written | None:
    """Return the newest results with as much of the history as fits; None if not even the newest attempt fits."""
    entries = [go_json(entry) for entry in (*earlier, newest)]
    room = free - size_of(newest) - len(HISTORY) - len("[]")
    kept = len(entries)
    sizes = [len(entry.encode()) + 1 for entry in entries]
    total = sum(sizes) - 1
    while kept and total > room:
        total -= sizes[len(entries) - kept]
        kept -= 1
    if not kept:
        return None
    history = "[" + ",".join(entries[len(entries) - kept :]) + "]"
    return Written({**newest, HISTORY: history}, 0, len(entries) - kept)


def _most_that_fit(
    results: SchedulingResults, nodes: Sequence[str], whole: dict[str, str], free: int
) -> tuple[int, dict[str, str]]:
    """Return how many of the first nodes fit into the annotations, possibly slightly too few, and the annotations with these.

    Sizes grow almost linearly with the number of nodes, so a few guesses suffice. Each costs as much as encoding the
    annotations.
    """
    few, most = 0, len(nodes)
    kept, size = encode(results.restricted(())), _size_with_history(whole)
    kept_size = _size_with_history(kept)
    while most - few > max(1, len(nodes) // CLOSE_ENOUGH) and kept_size <= free:
        guess = few + (most - few) * (free - kept_size) // max(size - kept_size, 1)
        # Assume slightly less than proportional growth, so that this guess usually fits and the next one continues from
        # it.
        guess = min(max(guess - guess // 100, few + 1), most - 1)
        found = encode(results.restricted(nodes[:guess]))
        found_size = _size_with_history(found)
        if found_size <= free:
            few, kept, kept_size = guess, found, found_size
        else:
            most, size = guess, found_size
    return few, kept


def _size_with_history(newest: dict[str, str]) -> int:
    """Return the size of one attempt's annotations with a history that contains only this attempt."""
    return size_of(newest) + len(HISTORY) + len("[]") + len(go_json(newest).encode())
