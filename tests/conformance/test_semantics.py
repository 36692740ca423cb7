"""Each rule of `conformance/SEMANTICS.md` has a test, in a small cluster where the rule decides."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from bayplan.base import go_arithmetic as go
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import log
from bayplan.conformance.cases import Json
from bayplan.conformance.comparer import compare
from bayplan.conformance.cycles import answer_cycle_case
from bayplan.engine.preparation import PreFilters
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, EventResource, registrations
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import PROCEED, PreFilterPlugin, PreFilterResult
from bayplan.framework.profile import Profile
from bayplan.framework.status import Status, unresolvable, unschedulable
from bayplan.plugins.registry import IN_TREE
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from tests.conformance.recorded import answered, placed_cycle, put, recorded
from tests.conformance.semantics import filtering, preemption, scoring
from tests.conformance.semantics.rows import Row
from tests.plugins.builders import make_node, make_plugin, make_state

RULES = (Path(__file__).resolve().parents[2] / "conformance" / "SEMANTICS.md").read_text(encoding="utf-8")
ROWS = (*preemption.ROWS, *filtering.ROWS, *scoring.ROWS)
BY_THEMSELVES = frozenset({12, 18, 26, 27, 39, 41})
"""Rules that no answer to one case can show: tested below."""


@pytest.mark.parametrize("row", [pytest.param(row, id=f"rule {row.rule}: {row.summary}") for row in ROWS])
def test_cycles_follow_the_rule(row: Row) -> None:
    answer = answer_cycle_case(row.case)
    assert answer["error"] is None
    cycles = answer["cycles"]
    assert {path: _find(cycles, path) for path in row.want} == dict(row.want)


def test_each_rule_has_a_test() -> None:
    rules = {int(number) for number in re.findall(r"^(\d+)\. ", RULES, re.MULTILINE)}
    assert rules == {row.rule for row in ROWS} | BY_THEMSELVES
    names = [name for name in globals() if name.startswith("test_rule_")]
    assert {int(name.split("_")[2]) for name in names} == BY_THEMSELVES


def _find(value: Json, path: str) -> Json:
    """Return the value at a path of an answer. Names may contain dots, so the longest existing name is used."""
    steps = path.split(".")
    place = 0
    while place < len(steps):
        if isinstance(value, list):
            value, place = value[int(steps[place])], place + 1
            continue
        assert isinstance(value, dict), path
        for end in range(len(steps), place, -1):
            name = ".".join(steps[place:end])
            if name in value:
                value, place = value[name], end
                break
        else:
            pytest.fail(f"nothing at {path}")
    return value


class _Answering(PreFilterPlugin[None]):
    """Answers PreFilter as configured, and records the calls."""

    def __init__(self, name: str, answer: PreFilterResult | Status, asked: list[str]) -> None:
        self.name = name  # type: ignore[misc]  # Each of these stands for a plugin of its own.
        self._answer, self._asked = answer, asked

    def pre_filter(self, spec: None, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        self._asked.append(self.name)
        return self._answer


@pytest.mark.parametrize(
    ("answers", "want", "asked"),
    [
        pytest.param(
            [unschedulable("a"), unschedulable("b"), PROCEED],
            unschedulable("b").by("P1"),
            ["P0", "P1", "P2"],
            id="rule 12: Unschedulable does not stop, and the last one wins",
        ),
        pytest.param(
            [unschedulable("a"), unresolvable("b"), unschedulable("c")],
            unresolvable("b").by("P1"),
            ["P0", "P1"],
            id="rule 12: UnschedulableAndUnresolvable stops at once",
        ),
        pytest.param(
            [PreFilterResult(node_names=frozenset({"n1"})), PreFilterResult(node_names=frozenset({"n2"})), PROCEED],
            unresolvable("node(s) didn't satisfy plugin(s) [P0 P1] simultaneously"),
            ["P0", "P1"],
            id="rule 12: node sets with nothing in common give a status without a plugin",
        ),
    ],
)
def test_rule_12_pre_filter_results_are_combined(
    answers: Sequence[PreFilterResult | Status], want: Status, asked: list[str]
) -> None:
    reported: list[str] = []
    plugins = [_Answering(f"P{number}", answer, reported) for number, answer in enumerate(answers)]
    profile = cast(Profile, SimpleNamespace(pre_filter=plugins, filter=()))
    outcome = PreFilters(profile, {plugin.name: None for plugin in plugins}, make_state([])).refresh(CycleState())
    assert outcome.status == want
    assert reported == asked


def test_rule_18_reasons_of_extended_resources_are_a_set() -> None:
    case = recorded(placed_cycle())
    turned = answered(case)
    for path in (("filter", "n3"), ("filterAll", "NodeResourcesFit", "n3")):
        put(turned.body, ("cycles", 0, *path, "reasons"), ["Insufficient memory", "Insufficient cpu"])
    assert not compare(case, turned).differences
    put(turned.body, ("cycles", 0, "filter", "n3", "reasons"), ["Insufficient memory"])
    assert compare(case, turned).differences


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        pytest.param(
            {"NodeDeclaredFeatures": False},
            "depends on features that are disabled",
            id="rule 26: NodeDeclaredFeatures can't be switched off alone",
        ),
        *(
            pytest.param({gate: False}, "locked", id=f"rule 26: {gate} is locked on")
            for gate in (
                "DynamicResourceAllocation",
                "InPlacePodVerticalScaling",
                "SidecarContainers",
                "SchedulerQueueingHints",
            )
        ),
    ],
)
def test_rule_26_feature_gate_dependencies_and_locks_are_validated(gates: dict[str, bool], want: str) -> None:
    with pytest.raises(InputError, match=want):
        FeatureGates.from_mapping(gates)


def test_rule_27_plugins_registered_for_node_adds_also_get_taint_updates() -> None:
    state = make_state([make_node()])
    plugins = [make_plugin(kind, state) for kind in IN_TREE]
    table = registrations([(plugin.name, plugin.events_to_register()) for plugin in plugins])
    added = {
        name
        for event, name, hint in table
        if event.resource == EventResource.NODE and event.actions == ActionType.UPDATE_NODE_TAINT and hint is None
    }
    assert added == {
        *("DynamicResources", "InterPodAffinity", "NodeAffinity", "NodeDeclaredFeatures", "NodeName", "NodePorts"),
        *("NodeResourcesFit", "VolumeBinding", "VolumeRestrictions", "VolumeZone"),
    }


def test_rule_39_logarithms_match_go() -> None:
    differing = [number for number in range(1, 100) if log(float(number)) != math.log(number)]
    assert differing[:3] == [3, 14, 48]
    assert log(3.0) == float.fromhex("0x1.193ea7aad030ap+0")


def test_rule_41_integer_division_truncates_and_overflow_wraps() -> None:
    state = make_state([make_node(name) for name in ("n1", "n2", "n3", "n4")])
    dividends, divisors, want = [7, -7, 7, -7], [2, 2, -2, -2], [3, -3, -3, 3]
    rows = Rows(state)
    assert rows.quotient(np.array(dividends), np.array(divisors)).tolist() == want
    assert [go.quotient(a, b) for a, b in zip(dividends, divisors, strict=True)] == want
    assert go.wrap(2**63) == -(2**63)
    assert go.wrap(-(2**63) - 1) == 2**63 - 1
