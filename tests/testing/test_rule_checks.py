"""The conformance kit calls rules as the engine does, and each check catches a rule that violates its clause."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import (
    FilterPlugin,
    NormalizePlugin,
    Params,
    Plugin,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
)
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.state.arrays import Codes, Flags, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE
from bayplan.state.resource_table import CPU
from bayplan.state.views import Rows
from bayplan.testing.plugin_kit import check_plugin
from bayplan.testing.plugin_subject import PluginFault
from tests.testing.test_plugin_kit import PodSpec, Right, sample


class ParityRule(FilterRule):
    """Rejects all nodes while the number of pods in the cluster is odd."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state.columns)
        self.state = state
        self.odd = False

    def refresh(self) -> bool:
        before, self.odd = self.odd, len(self.state.pods) % 2 == 1
        return self.odd != before

    def filter(self, row: int) -> int:
        return 1 if self.odd else 0


class Parity(FilterPlugin[PodSpec]):
    """Has a rule that depends on the cluster as a whole; keeps its contract."""

    reads: ClassVar[Reads] = Reads.NODES
    rule: ClassVar[type[ParityRule]] = ParityRule
    compile = Right.compile
    reasons = Right.reasons

    def filter_rule(self, spec: PodSpec, cluster: ClusterState) -> FilterRule:
        return self.rule(cluster)


def test_a_rule_that_reads_the_whole_cluster_passes() -> None:
    check_plugin(Parity)


class SilentRefresh(Parity):
    """Notices that the number changed, and does not report it."""

    class rule(ParityRule):  # noqa: N801
        def refresh(self) -> bool:
            super().refresh()
            return False


class DeafInTrials(Parity):
    """Does not read the cluster again while pods are moved temporarily."""

    class rule(ParityRule):  # noqa: N801
        def after_changes(self, params: Params | None) -> None:
            self.seen = getattr(self, "seen", self.odd)
            self.odd = self.seen


class StaysInTrials(Parity):
    """Does not read the cluster again when a trial is over."""

    class rule(ParityRule):  # noqa: N801
        def after_undo(self, params: Params | None) -> None:
            return


class OtherForAll(Parity):
    class rule(ParityRule):  # noqa: N801
        def filter_all(self, codes: Codes) -> None:
            super().filter_all(codes)
            codes[self.columns.count - 1] = 1


class CountsOnce(PreFilterPlugin[PodSpec], FilterPlugin[PodSpec]):
    """Counts pods in PreFilter, but not again while they are moved temporarily."""

    compile = Right.compile
    reasons = Right.reasons

    def pre_filter(self, spec: PodSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult:
        return PreFilterResult((len(cluster.pods) % 2,))

    def filter(self, spec: PodSpec, params: Params | None, rows: Rows) -> Codes:
        return rows.verdicts((rows.everywhere(params == (1,)), 1))


class CountsAgain(CountsOnce):
    def params_after_changes(self, spec: PodSpec, params: Params | None, cluster: ClusterState) -> Params | None:
        return (len(cluster.pods) % 2,)


def test_a_plugin_that_recounts_during_trials_passes() -> None:
    check_plugin(CountsAgain)


class FreeCpuRule(ScoreRule):
    def __init__(self, state: ClusterState) -> None:
        super().__init__(state.columns)
        self.normalizes = True

    def score(self, row: int) -> int:
        columns = self.columns
        return max(int(columns.allocatable[CPU, row] - columns.usage[FIRST_RESOURCE + CPU, row]), 0)

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        return (max(1, *(int(raw[row]) for row in range(self.columns.count) if feasible[row])),)

    def normalize(self, scale: Params, raw: int, row: int) -> int:
        (most,) = scale
        assert isinstance(most, int)
        return min(raw * 100 // most, 100)


class Scored(NormalizePlugin[PodSpec]):
    reads: ClassVar[Reads] = Reads.NODES | Reads.USAGE
    rule: ClassVar[type[FreeCpuRule]] = FreeCpuRule
    compile = Right.compile

    def score_rule(self, spec: PodSpec, cluster: ClusterState) -> ScoreRule:
        return self.rule(cluster)


def test_a_score_rule_in_plain_python_passes() -> None:
    check_plugin(Scored)


class ShareRule(ScoreRule):
    """Gives every node the number of feasible nodes as raw score, and 100 as normalised score."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state.columns)
        self.normalizes = self.reads_feasible = True
        self.feasible = 0

    def prepare(self, feasible: Flags) -> None:
        self.feasible = sum(bool(feasible[row]) for row in range(self.columns.count))

    def score(self, row: int) -> int:
        return self.feasible

    def scale(self, raw: Ints, feasible: Flags) -> Params:
        return (self.feasible,)

    def normalize(self, scale: Params, raw: int, row: int) -> int:
        (count,) = scale
        assert isinstance(count, int)
        return raw * 100 // count


class Share(NormalizePlugin[PodSpec]):
    reads: ClassVar[Reads] = Reads.NODES
    compile = Right.compile

    def score_rule(self, spec: PodSpec, cluster: ClusterState) -> ScoreRule:
        return ShareRule(cluster)


def test_a_score_rule_that_reads_which_nodes_are_feasible_passes() -> None:
    check_plugin(Share)


class ScoredOnce(Scored):
    """Reads usage, but declares only nodes."""

    reads: ClassVar[Reads] = Reads.NODES


class NormalizesOtherwise(Scored):
    class rule(FreeCpuRule):  # noqa: N801
        def normalize_all(self, scale: Params, raw: Ints, normalized: Ints) -> None:
            super().normalize_all(scale, raw, normalized)
            normalized[0] = 7


class ScoresAllOtherwise(Scored):
    class rule(FreeCpuRule):  # noqa: N801
        def score_all(self, raw: Ints) -> None:
            super().score_all(raw)
            raw[: self.columns.count] = 7


BROKEN = [
    (SilentRefresh, "and refresh() did not report that other rows must be evaluated again"),
    (DeafInTrials, "after_changes() must read again everything that pods can change"),
    (StaysInTrials, "after_undo() must restore the rule"),
    (CountsOnce, "params_after_changes() must return the params for the changed cluster"),
    (
        ScoredOnce,
        "reads declares only Reads.NODES, and refresh() did not report that other rows must be evaluated again",
    ),
    (NormalizesOtherwise, "normalize_all() returns 7 for"),
    (ScoresAllOtherwise, "when called for all rows, and"),
]


@pytest.mark.parametrize(("plugin", "want"), [pytest.param(*each, id=each[0].__name__) for each in BROKEN])
def test_a_broken_rule_is_reported_with_its_fault(plugin: type[Plugin[Any]], want: str) -> None:
    with pytest.raises(PluginFault) as raised:
        check_plugin(plugin, clusters=60)
    assert want in str(raised.value)


def test_a_rule_that_differs_on_all_rows_is_reported() -> None:
    with pytest.raises(PluginFault, match="when called for all rows, and 0 when called for this one"):
        check_plugin(OtherForAll, sample_clusters=[sample()])
