"""Run a plan's filters on one row as if pods were added or removed: move the pods, filter, and move them back.

Upstream filters a node with nominated pods twice, with these pods and without: a pod that needs them must not count on
them, and one that they would displace must not take their place.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from bayplan.engine.filtered_rows import PASSES
from bayplan.engine.nominated_pods import NominatedPods
from bayplan.engine.plan import Plan
from bayplan.state.pod_info import PodInfo
from bayplan.state.pod_moves import PodMoves
from bayplan.state.row_log import LogReader, RowLog


class Trial:
    """A scope in which pods are moved. Always call `close` at its end.

    Args:
        plan: the plan whose filters are run; they must be up to date with the cluster.

    Attributes:
        moves: the moves so far.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._parts = plan.filtered.rules.results
        # Whether a filter whose verdicts can change may read single pods, not just logged columns.
        reads_pods = False
        for part in self._parts:
            reads_pods = reads_pods or (not part.static and (part.rule.reads_pods or not part.incremental))
        self.moves = PodMoves(plan.state, with_pods=reads_pods)

    def first_failure(self, row: int) -> int:
        """Return the first filter that fails on a row now, as ``number << 16 | verdict``; or `PASSES`."""
        for number in range(len(self._parts)):
            part = self._parts[number]
            if part.static:
                verdict = part.codes[row]
            else:
                part.rule.after_changes(part.params)
                verdict = part.filter_rule.filter(row)
            if verdict:
                return (number << 16) | int(verdict)
        return -1

    def first_failure_with(self, row: int, pods: Sequence[PodInfo]) -> int:
        """Return the result of `first_failure` as if `pods` were on the row, too, except those that already count."""
        length, known = len(self.moves), self._plan.state.pods
        for info in pods:
            if info.key not in known:
                self.moves.add(info, row)
        try:
            return self.first_failure(row)
        finally:
            self.moves.undo(length)

    def close(self) -> None:
        """Move all pods back, and restore the state that rules see."""
        self.moves.undo()
        for part in self._parts:
            if not part.static:
                part.rule.after_undo(part.params)


def first_failure_with(plan: Plan, row: int, pods: Sequence[PodInfo]) -> int:
    """Return the first failure on a row, first as if nominated `pods` were on it, too, then without them; or `PASSES`."""
    if pods:
        trial = Trial(plan)
        try:
            failure = trial.first_failure_with(row, pods)
        finally:
            trial.close()
        if failure != PASSES:
            return failure
    return plan.filtered.first_failure_at(row)


class ChangedRows:
    """Finds the rows on which a plan's verdicts, including nominated pods, may have changed, from the change logs.

    `logs`: the rows whose nominations changed, and any other rows.
    """

    def __init__(self, plan: Plan, *logs: RowLog) -> None:
        self._plan = plan
        self._readers = [LogReader(log) for log in (plan.state.change_log, *logs)]
        self._version: Hashable = None
        self._own_row = -1

    def forget(self) -> None:
        """Make the next `take` return None: all rows may have changed."""
        self._version = None

    def take(self, nominated: NominatedPods, version: Hashable = None) -> list[int] | None:
        """Return the rows that may have changed since the last call, each once, or None if all may have.

        `version`: anything else that the results depend on.
        """
        filtered = self._plan.filtered
        # `combined` changes when a rule ran on all rows, the rules changed, or nodes changed.
        now = (version, filtered.combined)
        all_rows = now != self._version
        for part in filtered.rules.results:
            # Pods on other rows can change such a rule's result for this row, and no log names the rows.
            if part.rule.reads_others or not part.incremental:
                all_rows = True
        own_row = self._own_row
        self._version, self._own_row = now, nominated.own_row
        rows: dict[int, None] = {}
        for reader in self._readers:
            count = reader.take(len(filtered.flags))
            if count < 0:
                all_rows = True
            for number in range(count):
                rows[reader.rows[number]] = None
        if all_rows:
            return None
        # The evaluated pod's own nomination does not count on its row, but does count when the next pod is evaluated.
        for row in (own_row, nominated.own_row):
            if row >= 0:
                rows[row] = None
        return list(rows)
