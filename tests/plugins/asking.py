"""Evaluate a plugin that reads several pods on a scene; like a plan, keep its spec between evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import Params, PreFilterResult
from bayplan.framework.status import Code, Status
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.row_results import verdicts_of
from tests.plugins.builders import make_plugin
from tests.plugins.forms import scored

Verdicts = dict[str, tuple[str, ...] | None]


class Asked:
    """A plugin with one pod, compiled once.

    If `forms` is set, single rows are evaluated, too, and must give the same results.
    """

    forms = True

    def __init__(self, kind: type[Any], pod: Pod, state: ClusterState, arguments: object = None, **gates: bool) -> None:
        self.plugin = make_plugin(kind, state, arguments, **gates)
        self.pod = pod
        self.state = state
        self.spec = self.plugin.compile(pod, state)

    def pre_filter(self) -> PreFilterResult | Status:
        """Return the result of PreFilter."""
        answer: PreFilterResult | Status = self.plugin.pre_filter(self.spec, self.state, CycleState())
        return answer

    def skips_filter(self) -> bool:
        """Return whether PreFilter returns Skip."""
        answer = self.pre_filter()
        return isinstance(answer, Status) and answer.code is Code.SKIP

    def reasons(self, params: Params | None = None) -> Verdicts:
        """Return why each node is rejected, None if it is not; `params` replaces the params of PreFilter."""
        if params is None:
            answer = self.pre_filter()
            if isinstance(answer, Status):
                assert answer.code is Code.SKIP, answer
                return dict.fromkeys(self.state.nodes.row_of)
            params = answer.params
        verdicts = verdicts_of(self.plugin, self.spec, params, Rows(self.state))
        found: Verdicts = {}
        for name, row in self.state.nodes.row_of.items():
            verdict = int(verdicts[row])
            found[name] = self.plugin.reasons(self.spec, params, verdict) if verdict else None
            if not self.forms:
                continue
            one = Rows(self.state, np.array([row], dtype=np.intp))
            assert int(verdicts_of(self.plugin, self.spec, params, one)[0]) == verdict
        return found

    def scores(self, feasible: list[str]) -> tuple[dict[str, int], dict[str, int]] | None:
        """Return the raw and the normalized scores of the feasible nodes, or None if PreScore returns Skip."""
        state = self.state
        mask = np.zeros(state.nodes.count, dtype=np.bool_)
        mask[[state.nodes.row_of[name] for name in feasible]] = True
        params = self.plugin.pre_score(self.spec, state, mask)
        if isinstance(params, Status):
            assert params.code is Code.SKIP, params
            return None
        return scored(self.plugin, self.spec, params, state, mask)
