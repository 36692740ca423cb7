"""What a plan said of a state it need not find out again. That it stays right is tested in test_kept_results.py."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from bayplan.engine import answers_by_state
from bayplan.engine.answers_by_state import AnswersByState
from bayplan.engine.part import FilterPart, ScorePart
from bayplan.engine.row_states import RowStates
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import FilterPlugin, Handle, Params, Reads, ScorePlugin
from bayplan.framework.status import ERROR_BIT
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Row, Rows
from bayplan.testing.builders import make_node, make_pod


class Counting(FilterPlugin["Counting"], ScorePlugin["Counting"]):
    """Rejects nodes with more than two pods, scores the number of pods, and counts the rows that it was asked about."""

    name = "Counting"
    reads = Reads.NODES | Reads.USAGE
    scalar = True
    amounts_only: ClassVar[bool] = True
    key = "counting"

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self.asked = 0

    def compile(self, pod: Pod, cluster: ClusterState) -> Counting:
        """Return itself, which is all the same."""
        return self

    def filter(self, spec: Counting, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes with more than two pods."""
        self.asked += len(rows)
        return rows.codes(rows.where(rows.pod_count() > self.limit(rows), 1, 0))

    def limit(self, rows: Rows) -> Any:
        """Return how many pods nodes may have."""
        return 2

    def score(self, spec: Counting, params: Params | None, rows: Rows) -> Ints:
        """Return the number of pods."""
        self.asked += len(rows)
        return rows.pod_count()


class Elsewhere(Counting):
    """Says the same, but promises nothing."""

    amounts_only: ClassVar[bool] = False


class Heir(Counting):
    """Has a rule of its own, and promises nothing about it."""

    def filter(self, spec: Counting, params: Params | None, rows: Rows) -> Codes:
        """Reject nodes of a name."""
        return rows.codes(rows.where(rows.named(["n00"]), 1, 0))


class HeirByAnotherName(Counting):
    """Has the rule of its parent, and a piece of its own in it."""

    def limit(self, rows: Rows) -> Any:
        """Return how many pods a node of a name may have, and others."""
        return rows.where(rows.named(["n00"]), 1, 2)


class Namesake(Counting):
    """Says the same under another name."""

    name = "Namesake"
    most: int = 3


class Failing(Counting):
    """Fails on every node."""

    amounts_only: ClassVar[bool] = True

    def filter(self, spec: Counting, params: Params | None, rows: Rows) -> Codes:
        """Say Error."""
        return rows.codes(rows.fill(ERROR_BIT))


def asking(kind: type[Counting], nodes: int) -> tuple[ClusterState, Counting, AnswersByState]:
    state = ClusterState()
    for number in range(nodes):
        state.add_node(make_node(f"n{number:02}").capacity(cpu="4", memory="8Gi").obj())
    plugin = kind(None, Handle(state, FeatureGates()))
    answers = AnswersByState(RowStates(state), Row(state))
    filters, scores = FilterPart(plugin, plugin, state), ScorePart(plugin, plugin, state)
    filters.params = scores.params = ()
    answers.choose_filters([filters])
    answers.choose_scores([(scores, 3)], alone=True)
    return state, plugin, answers


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        pytest.param(Counting, True, id="a plugin that promises to look at amounts alone"),
        pytest.param(Elsewhere, False, id="one that says that it does not"),
        pytest.param(Heir, False, id="one that inherits the promise, but not the rule"),
        pytest.param(HeirByAnotherName, False, id="one that inherits it, and has a piece of the rule of its own"),
        pytest.param(Namesake, True, id="one that inherits all and adds no code"),
        pytest.param(Failing, True, id="one that promises it of its own rule"),
    ],
)
def test_only_who_promises_it_is_asked_by_state(kind: type[Counting], want: bool) -> None:
    state = ClusterState()
    plugin = kind(None, Handle(state, FeatureGates()))
    part = FilterPart(plugin, plugin, state)
    part.params = ()
    assert part.follows_from_state is want


def place(state: ClusterState, name: str, row: int) -> None:
    state.place(state.pod_info(make_pod(name).req(cpu="1").obj()), row)


@pytest.mark.parametrize("few", [0, 12], ids=["on arrays", "one by one"])
def test_rows_in_one_state_are_asked_about_once(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_by_state, "FEW_STATES", few)
    state, plugin, answers = asking(Counting, 6)
    for row, count in enumerate((0, 1, 1, 3, 3, 3)):
        for number in range(count):
            place(state, f"p{row}-{number}", row)
    assert answers.follow()
    rows = np.arange(6, dtype=np.intp)
    assert answers.verdicts_of(rows).tolist() == [0, 0, 0, 1, 1, 1]
    assert answers.worths_of(rows).tolist() == [0, 3, 3, 9, 9, 9]
    assert plugin.asked <= (12 if few == 0 else 6)
    before = plugin.asked
    state.remove_pod("default/p1-0")
    place(state, "again", 0)
    assert answers.follow()
    assert [answers.verdict_of(row) for row in range(6)] == [0, 0, 0, 1, 1, 1]
    assert [answers.worth_of(row) for row in range(6)] == [3, 0, 3, 9, 9, 9]
    assert plugin.asked == before


def test_rows_pass_by_their_states() -> None:
    state, plugin, answers = asking(Counting, 6)
    assert answers.follow()
    assert answers.passing() is not None, "it is asked about the states that it does not know"
    assert answers.passing() is None, "all pass"
    for number in range(3):
        place(state, f"p{number}", 4)
    assert answers.follow()
    passing = answers.passing()
    assert passing is not None
    assert passing.tolist() == [True] * 4 + [False, True]
    before = plugin.asked
    state.remove_pod("default/p1")
    for number in range(3):
        place(state, f"q{number}", 2)
    assert answers.follow()
    passing = answers.passing()
    assert passing is not None
    assert passing.tolist() == [True, True, False, True, True, True]
    assert plugin.asked <= before + 1, "one state is new, and the other is known"


def test_totals_are_behind_in_rows_whose_state_has_moved_since() -> None:
    state, _, answers = asking(Counting, 6)
    assert answers.rows_beside_totals() is None, "nobody has noted them"
    answers.note_totals()
    for row in (1, 4, 5):
        place(state, f"p{row}", row)
    state.remove_pod("default/p4")
    assert answers.rows_beside_totals() == [1, 5]
    answers.note_totals()
    assert answers.rows_beside_totals() == []


def test_a_filter_that_fails_is_not_served() -> None:
    _, _, answers = asking(Failing, 2)
    assert answers.follow()
    said = [answers.serve]
    answers.verdict_of(0)
    assert [*said, answers.serve] == [True, False]
    assert answers.verdicts_of(np.arange(2, dtype=np.intp)).tolist() == [ERROR_BIT, ERROR_BIT]


@pytest.mark.parametrize(
    ("kind", "alone", "want"),
    [
        pytest.param(Counting, True, True, id="rules about amounts are served"),
        pytest.param(Counting, False, False, id="not so where placements change something else, too"),
        pytest.param(Elsewhere, True, False, id="nor rules that promise nothing"),
    ],
)
def test_who_is_served(kind: type[Counting], alone: bool, want: bool) -> None:
    state, plugin, answers = asking(kind, 2)
    part = ScorePart(plugin, plugin, state)
    part.params = ()
    answers.choose_scores([(part, 1)], alone=alone)
    assert answers.serve is want


def test_plans_that_meet_many_new_states_again_and_again_are_no_longer_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_by_state, "FEW_STATES", 2)
    state, _, answers = asking(Counting, 40)
    rows = np.arange(40, dtype=np.intp)
    for strike in range(answers_by_state.MOST_STRIKES):
        assert answers.serve
        for row in range(4):
            request = {"cpu": f"{10 * strike + row}m"}
            state.place(state.pod_info(make_pod(f"p{strike}-{row}").req(request).obj()), row)
        assert answers.follow()
        answers.worths_of(rows)
    assert not answers.serve
