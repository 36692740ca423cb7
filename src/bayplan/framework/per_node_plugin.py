"""The simplest base class of plugins: plain Python, called for one node at a time."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from operator import index
from typing import TypeGuard

import msgspec
import numpy as np

from bayplan.base.errors import PluginError
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.plugin import FilterPlugin, Handle, NormalizePlugin, Params
from bayplan.framework.status import ERROR_BIT, MAX_PLUGIN_CODE, UNRESOLVABLE_BIT, Code, Status
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows


@dataclass(frozen=True)
class PerNodeSpec:
    """The spec of a `PerNodePlugin`: the pod itself. `key` identifies all that the plugin may read of the pod."""

    key: Hashable
    pod: Pod


class PerNodePlugin(FilterPlugin[PerNodeSpec], NormalizePlugin[PerNodeSpec]):
    """A filter and score plugin for single nodes.

    Override `filter_node`, `score_node`, or both. They are called for each node in every cycle, or once for each
    combination of pod and node if you declare `reads = Reads.NODES`.
    """

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._texts: list[tuple[str, ...]] = [()]
        self._verdicts: dict[tuple[Code, tuple[str, ...]], int] = {}

    @classmethod
    def extension_points(cls) -> tuple[str, ...]:
        """Return the extension points whose method is overridden: a plugin that only filters is not a score plugin."""
        plain = {
            "filter": cls.filter_node is PerNodePlugin.filter_node,
            "score": cls.score_node is PerNodePlugin.score_node,
        }
        return tuple(point for point in super().extension_points() if not plain.get(point, False))

    def filter_node(self, pod: Pod, node: NodeInfo) -> str | Status | None:
        """Return None if the node can run the pod, else the reason; `unresolvable(reason)` if preemption can't help."""
        return None

    def score_node(self, pod: Pod, node: NodeInfo) -> int:
        """Return the score of the node for the pod, from 0 to 100 unless `normalize` is overridden."""
        return 0

    def sign_pod(self, pod: Pod) -> Hashable:
        """Return all metadata, because the methods may read any of it. Override this to share results between pods."""
        return msgspec.msgpack.encode(pod.metadata)

    def compile(self, pod: Pod, cluster: ClusterState) -> PerNodeSpec:
        """Store the pod."""
        spec = msgspec.structs.replace(pod.spec, node_name="")
        return PerNodeSpec((self.sign_pod(pod), msgspec.msgpack.encode(spec)), pod)

    def filter(self, spec: PerNodeSpec, params: Params | None, rows: Rows) -> Codes:
        """Call `filter_node` for each row."""
        results = (self._verdict(spec.pod, rows.state, row) for row in rows.row_numbers().tolist())
        return np.fromiter(results, dtype=np.uint16, count=len(rows))

    def score(self, spec: PerNodeSpec, params: Params | None, rows: Rows) -> Ints:
        """Call `score_node` for each row."""
        results = (self._score(spec.pod, rows.state, row) for row in rows.row_numbers().tolist())
        return np.fromiter(results, dtype=np.int64, count=len(rows))

    def _score(self, pod: Pod, state: ClusterState, row: int) -> int:
        """Return the score of a node.

        Raises:
            PluginError: the score is not an integer, or beyond 64 bits.
        """
        node = state.nodes.nodes[row]
        if node is None:
            return 0
        try:
            score = self.score_node(pod, NodeInfo(state, row))
        except Exception as problem:
            problem.add_note(_subject(pod, node))
            raise
        try:
            return int(np.int64(index(score)))
        except (TypeError, OverflowError):
            got = f"{score!r:.80} for node {node.metadata.name}"
            raise PluginError(f"{self.name}.score_node", wanted="an integer from 0 to 100", got=got) from None

    def scale(self, spec: PerNodeSpec, params: Params | None, raw: Ints) -> Params:
        """Return no scale: scores are not normalised."""
        return ()

    def normalize(self, spec: PerNodeSpec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        """Return the scores unchanged."""
        return raw

    def reasons(self, spec: PerNodeSpec, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the reasons that `filter_node` returned for this verdict."""
        return self._texts[verdict & MAX_PLUGIN_CODE]

    def _verdict(self, pod: Pod, state: ClusterState, row: int) -> int:
        node = state.nodes.nodes[row]
        if node is None:
            return 0
        try:
            answer = self.filter_node(pod, NodeInfo(state, row))
        except Exception as problem:
            problem.add_note(_subject(pod, node))
            raise
        if answer is None:
            return 0
        if isinstance(answer, str) and answer:
            answer = Status(Code.UNSCHEDULABLE, (answer,))
        elif not _is_verdict(answer):
            raise PluginError(f"{self.name}.filter_node", wanted="None, a reason or a Status", got=repr(answer))
        if answer.code is Code.SUCCESS:
            return 0
        known = self._verdicts.get((answer.code, answer.reasons))
        if known is None:
            known = len(self._texts)
            if known > MAX_PLUGIN_CODE:
                raise PluginError(
                    f"{self.name} has returned {MAX_PLUGIN_CODE} different reasons, the maximum", hint="fewer reasons"
                )
            self._texts.append(answer.reasons)
            if answer.code is Code.ERROR:
                known |= ERROR_BIT
            elif answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                known |= UNRESOLVABLE_BIT
            self._verdicts[answer.code, answer.reasons] = known
        return known


def _is_verdict(answer: object) -> TypeGuard[Status]:
    """Return whether a result of `filter_node` is a Status: Success, or a rejection or an error with reasons."""
    if not isinstance(answer, Status) or answer.code > Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return False
    texts = isinstance(answer.reasons, tuple) and all(isinstance(each, str) and each for each in answer.reasons)
    return texts and (answer.ok or answer.reasons != ())


def _subject(pod: Pod, node: Node) -> str:
    """Return the pod and the node of a failed call, as a note for the exception."""
    return f"pod {pod.key}, node {node.metadata.name}"
