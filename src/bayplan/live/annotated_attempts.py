"""Attempts of other schedulers as decision records, read from the result annotations of kube-scheduler-simulator.

The annotations (`bayplan.formats.result_annotations`) have the result of each plugin for each node, and the chosen
node. Status codes, weights, times, victims and the order of the plugins are missing; docs/simulator.md lists their
substitutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from bayplan.base.errors import InputError
from bayplan.engine.decision import Frame, Outcome, Record
from bayplan.engine.extenders import ExtenderResult
from bayplan.engine.preparation import PreFilterRecord
from bayplan.formats.result_annotations import (
    PASSED,
    SUCCESS,
    ExtenderFilterResult,
    ExtenderResults,
    NodeTexts,
    PluginTexts,
    SchedulingResults,
)
from bayplan.framework.configuration.defaults import default_plugins
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Params
from bayplan.framework.status import Code, Status, unresolvable, unschedulable
from bayplan.live.decision_store import AnnotatedAttempt, LatePoints, PointResult
from bayplan.state.arrays import Bools, Codes, Index, Ints

WAIT = "wait"
DEFAULT_POST_FILTER = "DefaultPreemption"
MAX_CELLS = 1_000_000
"""Maximum number of results (nodes times plugins) of an attempt, because short annotations can name many of both.

Several times as many as 5,000 nodes need; they take 20 MB.
"""

MAX_ORDERED_PLUGINS = 100
"""Maximum number of filter plugins whose order is derived: that takes time proportional to nodes times plugins."""

OVERWRITTEN = "passed, but only in the dry run of preemption, which has overwritten the reason"
"""The reason shown for a node that passed all filters in an attempt without a node."""


class AnnotatedKeyframe:
    """Verdicts and scores of one attempt; see `bayplan.engine.decision.KeyframeValues`.

    Attributes:
        statuses: the statuses behind the verdicts of filters other than `PASSED`, by (index of the filter, verdict).
        nbytes: the approximate size in bytes.
    """

    floor = 0

    def __init__(self, names: Sequence[str], filters: Sequence[str], scorers: Sequence[str]) -> None:
        count = len(names)
        cells = count * (len(filters) + len(scorers))
        if cells > MAX_CELLS:
            raise InputError(
                "result annotations", got=f"{cells:,} results (nodes times plugins)", wanted=f"at most {MAX_CELLS:,}"
            )
        self.names: tuple[str | None, ...] = tuple(names)
        self.order: Index = np.arange(count, dtype=np.intp)
        self.examined: Bools | None = None
        self.absent: Status | None = None
        self.filter_names = tuple(filters)
        self.scorer_weights = tuple((name, 1) for name in scorers)
        self.codes: Codes = np.zeros((len(filters), count), dtype=np.uint16)
        self.raw: Ints = np.zeros((len(scorers), count), dtype=np.int64)
        self.final: Ints = np.zeros_like(self.raw)
        self.statuses: dict[tuple[int, int], Status] = {}
        self._verdicts: dict[tuple[int, Status], int] = {}

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        arrays = (self.order, self.codes, self.raw, self.final)
        texts = sum(len(status.message) + 200 for status in self.statuses.values())
        return sum(array.nbytes for array in arrays) + 80 * len(self.names) + texts

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status behind a verdict of a filter; `number` is the index of the filter."""
        return self.statuses[number, verdict]

    def normalize(self, number: int, scale: Params | None, raw: Ints) -> Ints:
        """Return the stored final scores: all weights are 1, because the annotations have only the weighted scores."""
        final: Ints = self.final[number]
        return final

    def values_until(self, changes: int) -> tuple[Codes, Ints]:
        """Return verdicts and raw scores; they never change."""
        return self.codes, self.raw

    def verdict(self, number: int, status: Status) -> int:
        """Return the number assigned to a status of a filter; an unknown status gets a new number."""
        known = self._verdicts.get((number, status))
        if known is None:
            known = self._verdicts[number, status] = len(self._verdicts) + 1
            self.statuses[number, known] = status
        return known


def annotated_attempt(
    results: SchedulingResults,
    *,
    pod: str,
    attempt: int,
    time_ns: int,
    scheduler_name: str = "",
    nodes: Sequence[str] = (),
    message: str = "",
) -> AnnotatedAttempt:
    """Return an attempt as decision records.

    Args:
        results: the content of the annotations.
        pod: ``namespace/name``.
        attempt: the 1-based number of the attempt.
        time_ns: the time when it was read.
        scheduler_name: the scheduler name of the pod.
        nodes: the nodes of the cluster at that time; those without a row in the results were not examined.
        message: why the pod has no node, according to its condition; "" to build the message from the results.
    """
    rows = _Rows(results, nodes)
    keyframe, frame = rows.keyframe, rows.frame()
    node = results.selected_node
    nominated = next((name for name, texts in results.post_filter.items() if texts), "")
    if not node and not message:
        message = rows.message()
    record = Record(
        time_ns,
        pod,
        attempt,
        Outcome.SCHEDULED if node else Outcome.UNSCHEDULABLE,
        node,
        len(rows.feasible),
        len(rows.examined),
        len(frame.ties or ()) if rows.is_best(node) else 0,
        rows.total_of(node),
        "" if node else message,
        "" if node else nominated,
    )
    points, late_results, refused = _late(results, scheduler_name)
    refusal = None
    if node and refused is not None:
        outcome = Outcome.UNSCHEDULABLE if refused.code.rejects else Outcome.ERROR
        refusal = Record(time_ns, pod, attempt, outcome, "", message=refused.message)
    return AnnotatedAttempt(record, frame, points, late_results, keyframe.nbytes, refusal)


class _Rows:
    """The rows of one attempt: nodes, verdicts of the filters, scores.

    Attributes:
        names: the nodes.
        keyframe: the verdicts and scores.
        examined, feasible: the rows that filters examined, and those of them that fit.
    """

    def __init__(self, results: SchedulingResults, nodes: Sequence[str]) -> None:
        self._results = results
        extenders = results.extenders if results.extenders is not None else ExtenderResults()
        asked = {url: _called_nodes(answer) for url, answer in extenders.filter.items()}
        names = dict.fromkeys(nodes)
        tables: tuple[Iterable[str], ...] = (results.filter, results.score, results.post_filter)
        for table in (*tables, *results.pre_filter.values(), *asked.values()):
            names.update(dict.fromkeys(table))
        self.names = [*names]
        self._row = {name: row for row, name in enumerate(self.names)}
        filters = call_order(results.filter)
        scorers = sorted({plugin for row in results.final_score.values() for plugin in row}, key=_default_place)
        self.keyframe = AnnotatedKeyframe(self.names, filters, scorers)
        self._overrides: list[tuple[int, int, int]] = []
        self._extenders = tuple(self._extender(url, asked.get(url, ()), extenders) for url in _urls(extenders))
        self.examined = [row for name, row in self._row.items() if name in results.filter]
        self._fill_pre_filter()
        self._fill_filters()
        self._fill_scores()
        self.feasible = self._find_feasible()
        self._totals = self._sum_scores()
        self._best = self._find_best()

    # --- results of the plugins ---------------------------------------------------------------------------------------

    def _fill_pre_filter(self) -> None:
        left = [frozenset(names) for names in self._results.pre_filter.values()]
        if left:
            common = frozenset.intersection(*left)
            self.keyframe.examined = np.array([name in common for name in self.names], dtype=np.bool_)
            plugins = " ".join(sorted(self._results.pre_filter))
            self.keyframe.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{plugins}]")

    def _fill_filters(self) -> None:
        keyframe, results = self.keyframe, self._results
        places = {plugin: number for number, plugin in enumerate(keyframe.filter_names)}
        stale = set[int]()
        refused = {row for extender in self._extenders for row, _ in extender.refused}
        for name, texts in results.filter.items():
            row, failed = self._row[name], False
            for plugin, text in texts.items():
                if text != PASSED:
                    failed = True
                    status = Status(Code.UNSCHEDULABLE, tuple(text.split(", ")), plugin)
                    keyframe.codes[places[plugin], row] = keyframe.verdict(places[plugin], status)
            if failed or row in refused:
                continue
            if not results.selected_node and name in results.post_filter and keyframe.filter_names:
                plugins = (plugin for row in results.post_filter.values() for plugin in row)
                status = unschedulable(OVERWRITTEN).by(next(plugins, DEFAULT_POST_FILTER))
                self._overrides.append((row, 0, keyframe.verdict(0, status)))
            elif results.final_score and name not in results.final_score:
                # The row is left from an earlier attempt: this attempt did not examine the node.
                stale.add(row)
        self.examined = [row for row in self.examined if row not in stale]

    def _fill_scores(self) -> None:
        keyframe = self.keyframe
        for number, (plugin, _) in enumerate(keyframe.scorer_weights):
            for table, values in ((self._results.score, keyframe.raw), (self._results.final_score, keyframe.final)):
                for name, scores in table.items():
                    if name in self._row:
                        values[number, self._row[name]] = scores.get(plugin, 0)

    def _extender(self, url: str, asked: Sequence[str], extenders: ExtenderResults) -> ExtenderResult:
        answer = extenders.filter.get(url, ExtenderFilterResult())
        refused: list[tuple[int, Status]] = []
        for make, failed in (
            (unschedulable, answer.failed_nodes),
            (unresolvable, answer.failed_and_unresolvable_nodes),
        ):
            refused += [(self._row[name], make(text).by(url)) for name, text in (failed or {}).items()]
        scores = extenders.prioritize.get(url)
        return ExtenderResult(
            name=url,
            weight=1,
            scale=1,
            asked=tuple(self._row[name] for name in asked),
            refused=tuple(refused),
            scores=None
            if scores is None
            else tuple((self._row[each.host], each.score) for each in scores if each.host in self._row),
            filter_error=answer.error,
        )

    # --- the outcome --------------------------------------------------------------------------------------------------

    def _find_feasible(self) -> list[int]:
        """Return the examined rows that no filter and no extender rejected."""
        failing: Bools = np.any(self.keyframe.codes, axis=0)
        refused = {row for extender in self._extenders for row, _ in extender.refused} | {
            row for row, _, _ in self._overrides
        }
        return [row for row in self.examined if not failing[row] and row not in refused]

    def _sum_scores(self) -> dict[int, int]:
        """Return the total scores of the feasible rows; empty if nothing was scored."""
        if not self._results.final_score:
            return {}
        totals = {row: int(self.keyframe.final[:, row].sum()) for row in self.feasible}
        for extender in self._extenders:
            for row, score in extender.scores or ():
                if row in totals:
                    totals[row] += score
        return totals

    def _find_best(self) -> list[int]:
        """Return the rows with the highest total; all feasible rows if nothing was scored."""
        best = max(self._totals.values(), default=0)
        return [row for row, total in self._totals.items() if total == best] if self._totals else self.feasible

    def is_best(self, node: str) -> bool:
        """Return whether no node has a higher total.

        False is possible if the weights differed from those in the annotations.
        """
        return self._row.get(node, -1) in self._best

    def total_of(self, node: str) -> int:
        """Return the total score of a node; 0 if nothing was scored."""
        return self._totals.get(self._row.get(node, -1), 0)

    def frame(self) -> Frame:
        """Return the full record of the attempt."""
        results, totals = self._results, self._totals
        allowed = self.keyframe.examined
        looked_at = set(self.examined)
        visible = [row for row in range(len(self.names)) if allowed is None or allowed[row]]
        sample = None
        if any(row not in looked_at for row in visible):
            examined = [row for row in visible if row in looked_at]
            self.keyframe.order = np.array(
                [*examined, *(row for row in visible if row not in looked_at)], dtype=np.intp
            )
            sample = (0, len(examined))
        return Frame(
            self.keyframe,
            0,
            bool(totals),
            (None,) * len(self.keyframe.scorer_weights) if totals else (),
            tuple(self._overrides),
            tuple(self._best) if results.selected_node else (),
            self._pre_filter_failure(),
            sample=sample,
            extenders=self._extenders or None,
            pre_filters=_pre_filters(results),
            pre_scores=tuple((plugin, _code(text)) for plugin, text in _by_default_place(results.pre_score)),
        )

    def _pre_filter_failure(self) -> Status | None:
        for plugin, text in self._results.pre_filter_status.items():
            if text not in (SUCCESS, ""):
                return Status(Code.UNSCHEDULABLE, (text,), plugin)
        return None

    def message(self) -> str:
        """Return why no node is feasible, in the form of upstream's message."""
        count = len(self.names)
        failure = self._pre_filter_failure()
        if failure is not None:
            return f"0/{count} nodes are available: {failure.message}."
        counts: Counter[str] = Counter()
        for texts in self._results.filter.values():
            counts.update(reason for text in texts.values() if text != PASSED for reason in text.split(", "))
        for extender in self._extenders:
            counts.update(status.message for _, status in extender.refused)
        if self.keyframe.absent is not None and self.keyframe.examined is not None:
            counts[self.keyframe.absent.message] += int((~self.keyframe.examined).sum())
        reasons = ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items() if number))
        return f"0/{count} nodes are available: {reasons}." if reasons else f"0/{count} nodes are available."


def call_order(rows: NodeTexts) -> list[str]:
    """Return the filter plugins in a possible order of their calls.

    The annotations sort plugins by name. But the row of a node ends with its first failure: all other plugins in that row ran
    before, and all plugins that are not in it would have run later. The default profile, then names resolve remaining ties.
    """
    left = sorted({plugin for row in rows.values() for plugin in row}, key=_default_place)
    if len(left) > MAX_ORDERED_PLUGINS:
        return left
    before: dict[str, set[str]] = {plugin: set() for plugin in left}
    for row in rows.values():
        last = next((plugin for plugin, text in row.items() if text != PASSED), None)
        if last is not None:
            before[last] |= row.keys() - {last}
            for plugin in before.keys() - row.keys():
                before[plugin].add(last)
    found: list[str] = []
    while left:
        # If rows contradict each other, they are from several attempts: use the default order.
        ready = next((plugin for plugin in left if before[plugin] <= {*found}), left[0])
        left.remove(ready)
        found.append(ready)
    return found


_PLACES = {plugin.name: place for place, plugin in enumerate(default_plugins(FeatureGates()))}


def _default_place(plugin: str) -> tuple[int, str]:
    return (_PLACES.get(plugin, len(_PLACES)), plugin)


def _by_default_place(texts: PluginTexts) -> list[tuple[str, str]]:
    return sorted(texts.items(), key=lambda each: _default_place(each[0]))


def _code(text: str) -> Code:
    return {SUCCESS: Code.SUCCESS, "": Code.SKIP, WAIT: Code.WAIT}.get(text, Code.UNSCHEDULABLE)


def _pre_filters(results: SchedulingResults) -> tuple[PreFilterRecord, ...]:
    """Return the results of the PreFilter plugins. A plugin that failed was called last."""
    records = [
        PreFilterRecord(
            plugin,
            _code(text),
            "" if text == SUCCESS else text,
            frozenset(results.pre_filter[plugin]) if plugin in results.pre_filter else None,
        )
        for plugin, text in _by_default_place(results.pre_filter_status)
    ]
    return tuple(sorted(records, key=lambda each: each.code not in (Code.SUCCESS, Code.SKIP)))


def _late(results: SchedulingResults, scheduler_name: str) -> tuple[LatePoints, tuple[PointResult, ...], Status | None]:
    """Return the plugins after scoring, their results except success, and the first rejection after scoring or None."""
    texts: Mapping[str, PluginTexts] = {
        "Reserve": results.reserve,
        "Permit": results.permit,
        "PreBind": results.pre_bind,
        "Bind": results.bind,
    }
    post_filter = sorted({plugin for row in results.post_filter.values() for plugin in row})
    if results.post_filter and not post_filter:
        # PostFilter ran and nominated no node, so no annotation names its plugin.
        post_filter = [DEFAULT_POST_FILTER]
    nominated = any(results.post_filter.values())
    late_results = [PointResult("PostFilter", it, Status(Code.SUCCESS, (), it), 0) for it in post_filter if nominated]
    refused: Status | None = None
    for point, by_plugin in texts.items():
        for plugin, text in _by_default_place(by_plugin):
            if text == SUCCESS:
                continue
            status = Status(_code(text), (text,) if text not in ("", WAIT) else (), plugin)
            late_results.append(PointResult(point, plugin, status, 0))
            if status.code.rejects and refused is None:
                refused = status
    names = {point: tuple(name for name, _ in _by_default_place(by_plugin)) for point, by_plugin in texts.items()}
    points = LatePoints(
        scheduler_name,
        tuple(post_filter),
        names["Reserve"],
        names["Permit"],
        names["PreBind"],
        names["Bind"],
        (),
    )
    return points, tuple(late_results), refused


# --- extenders --------------------------------------------------------------------------------------------------------


def _urls(extenders: ExtenderResults) -> list[str]:
    return [*dict.fromkeys((*extenders.filter, *extenders.prioritize))]


class _Named(msgspec.Struct):
    name: str = ""


class _Node(msgspec.Struct):
    metadata: _Named = msgspec.field(default_factory=_Named)


class _Nodes(msgspec.Struct):
    items: list[_Node] = msgspec.field(default_factory=list)


def _called_nodes(answer: ExtenderFilterResult) -> list[str]:
    """Return the names of the nodes that an extender was called with: those that passed, and those that it rejected."""
    passed = answer.node_names or ()
    if bytes(answer.nodes) != b"null":
        passed = [node.metadata.name for node in msgspec.json.decode(answer.nodes, type=_Nodes).items]
    return [*dict.fromkeys((*passed, *(answer.failed_nodes or ()), *(answer.failed_and_unresolvable_nodes or ())))]
