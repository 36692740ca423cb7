"""Put faults into undo and refresh code of the uncompiled engine, one at a time, and check that a test catches each.

Run as a program with ``BAYPLAN_UNCOMPILED=1``, it prints a line of JSON for each fault: its number and whether a test
caught it.
"""

from __future__ import annotations

import inspect
import json
import sys
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from bayplan.engine.dry_run import DryRun
from bayplan.engine.filtered_rows import FilteredRows
from bayplan.engine.first_failures import FirstFailures
from bayplan.engine.preparation import PreparedPlugins
from bayplan.engine.rule_result import FilterResult, RuleResult
from bayplan.engine.totals import Totals
from bayplan.engine.what_if import ChangedRows, Trial
from bayplan.state import pod_moves
from bayplan.state.pod_moves import PodMoves
from bayplan.state.row_log import LogReader
from tests.engine.plan_histories import NO_LIMIT
from tests.engine.test_first_failures import test_refreshed_first_failures_equal_a_new_computation as values
from tests.engine.test_first_failures import (
    test_two_equal_pods_each_fit_only_on_their_nominated_node as alike,
)
from tests.engine.test_plan import test_a_refreshed_plan_equals_a_new_plan_after_every_change as plans
from tests.engine.test_plan import test_cached_totals_equal_a_full_pass as naive
from tests.engine.test_plan_cache import (
    test_an_adapted_plan_runs_plugins_again_that_run_once_for_each_spec as once_a_spec,
)
from tests.engine.test_preemption import test_a_nominated_pod_is_counted_once_in_a_dry_run as once
from tests.engine.test_preemption import test_a_search_for_victims_restores_the_filter_results as back
from tests.engine.test_preemption import (
    test_a_victim_becomes_useful_when_a_pod_on_another_node_of_its_zone_leaves as others,
)
from tests.engine.test_preemption import test_cached_dry_runs_match_a_new_search_after_every_change as outcomes
from tests.engine.test_preemption import test_evicting_a_victim_removes_its_anti_affinity as owned
from tests.engine.test_preemption import test_preemption_honours_budgets_added_after_the_previous_search as budgets
from tests.engine.test_preemption import (
    test_preemption_prefers_victims_that_have_not_started as starts,
)
from tests.engine.test_rule_result import (
    test_an_adapted_result_has_a_new_rule_that_is_bound_refreshed_and_told_of_the_changes_that_it_reads as adapted,
)
from tests.engine.test_what_if import test_an_exception_in_a_trial_leaves_state_and_plans_unchanged as raising
from tests.engine.test_what_if import test_closing_a_trial_restores_state_and_rules as undone
from tests.engine.test_what_if import (
    test_rules_in_a_trial_match_a_new_plan_after_real_moves as moved,
)

SEEDS = range(4)


class Fault(NamedTuple):
    """A text of a method or function, its faulty replacement, and the test that must fail with one of the seeds."""

    what: str
    of: type | ModuleType
    method: str
    text: str
    instead: str
    test: Callable[..., None]


FAULTS = (
    Fault("undo leaves the first move", PodMoves, "undo", "> length:", "> max(length, 1):", undone),
    Fault("undo takes back none", PodMoves, "undo", "> length:", "> len(self._moves):", undone),
    Fault("undo counts in the wrong direction", PodMoves, "undo", "row, -sign)", "row, sign)", undone),
    Fault("undo counts on the row before", PodMoves, "undo", "row, -sign)", "row - 1, -sign)", undone),
    Fault("undo leaves the ports", PodMoves, "undo", "if used is not None:", "if False:", undone),
    Fault("undo frees all ports", PodMoves, "undo", "restore(row, used)", "restore(row, [])", undone),
    Fault("a move forgets owned terms", pod_moves, "count_pod", "info.owned_counters", "()", owned),
    Fault(
        "a move back forgets selectors",
        pod_moves,
        "count_pod",
        "info.pod_class.counters:",
        "info.pod_class.counters * (count > 0):",
        undone,
    ),
    Fault(
        "undo leaves usage of one resource",
        pod_moves,
        "count_pod",
        "range(entries.shape[1])",
        "range(entries.shape[1] - (count < 0))",
        undone,
    ),
    Fault("the order of pods is lost", PodMoves, "undo", "self._state.pods_on[changed] = pods", "pass", raising),
    Fault("a trial is not closed", Trial, "close", "self.moves.undo()", "pass", undone),
    Fault("added pods stay", Trial, "first_failure_with", "self.moves.undo(length)", "pass", once),
    Fault(
        "rules go on with what they saw in a trial",
        Trial,
        "close",
        "part.rule.after_undo(part.params)",
        "pass",
        back,
    ),
    Fault(
        "rules overlook that pods moved", Trial, "first_failure", "part.rule.after_changes(part.params)", "pass", moved
    ),
    Fault("changed usage is overlooked", ChangedRows, "__init__", "plan.state.change_log, *logs", "*logs,", values),
    Fault("nominations are overlooked", ChangedRows, "__init__", ", *logs)", ",)", values),
    Fault("the last change is overlooked", ChangedRows, "take", "range(count)", "range(count - 1)", values),
    Fault(
        "the row of an earlier nominee is overlooked", ChangedRows, "take", "(own_row, nominated", "(nominated", alike
    ),
    Fault("the pod's own nomination is overlooked", ChangedRows, "take", ", nominated.own_row)", ",)", alike),
    Fault("rules that read other rows are overlooked", ChangedRows, "take", "part.rule.reads_others or", "", others),
    Fault("changed nodes are overlooked", ChangedRows, "take", "(version, filtered.combined)", "(version, 0)", values),
    Fault("changed budgets are overlooked", ChangedRows, "take", "(version, filtered", "(0, filtered", budgets),
    Fault("overrides stay", FirstFailures, "_evaluate", "self.overrides.pop(row, None)", "pass", values),
    Fault(
        "the count of the earlier value stays", FirstFailures, "_evaluate", "self._count(before, -1)", "pass", values
    ),
    Fault("rows stay feasible", FirstFailures, "_evaluate", "self.feasible[row] = value", "_ = value", values),
    Fault(
        "the pod's own failure wins",
        FirstFailures,
        "_evaluate",
        "first_failure_with(self._plan, row, pods) if",
        "max(first_failure_with(self._plan, row, pods), own) if",
        values,
    ),
    Fault("what runs has started is overlooked", DryRun, "__init__", ", plan.state.pod_log)", ")", starts),
    Fault(
        "changed rows keep their victims", DryRun, "search", "for row in changed:", "for row in changed[:0]:", outcomes
    ),
    Fault(
        "a reader overlooks the first entry",
        LogReader,
        "take",
        "copy_from(position, self",
        "copy_from(position + 1, self",
        plans,
    ),
    Fault(
        "a reader forgets how far it was",
        LogReader,
        "take",
        "self._position = log.end",
        "self._position = log.end - 1",
        plans,
    ),
    Fault(
        "failing rows are counted twice", FilterResult, "run_changed", "self.failing -= 1", "self.failing -= 2", plans
    ),
    Fault("the last row is not combined", FilteredRows, "_combine_rows", "range(count)", "range(count - 1)", plans),
    Fault("feasible rows are miscounted", FilteredRows, "_combine_rows", "1 if passes else -1", "1", plans),
    Fault(
        "rows stay feasible that no longer are",
        FilteredRows,
        "_combine_rows",
        "self.flags[row] = passes",
        "self.flags[row] |= passes",
        plans,
    ),
    Fault("adapted plugins do not run", PreparedPlugins, "adapt", " | _NEW_SPEC", "", once_a_spec),
    Fault(
        "adapted plugins after a changed one do not run",
        PreparedPlugins,
        "_combine",
        "changes & reads",
        "changes & reads & ~_NEW_SPEC",
        once_a_spec,
    ),
    Fault("the new rule is not bound", RuleResult, "_use", "self._version = -1", "pass", adapted),
    Fault("the old rule's reads stay", RuleResult, "_use", "if read != self._reads:", "if self._reads < 0:", adapted),
    Fault(
        "the new rule is not refreshed",
        RuleResult,
        "_use",
        "_refreshes = type(rule)",
        "_refreshes &= type(rule)",
        adapted,
    ),
    Fault("the old values stay", RuleResult, "_use", "self._interrupted = True", "pass", adapted),
    Fault(
        "the last total is not summed up",
        Totals,
        "_sum_rows",
        "row, after = rows[place]",
        "row, after = rows[0]",
        plans,
    ),
    Fault(
        "scales are computed over all nodes",
        Totals,
        "_rescale",
        "rule.scale(result.raw, feasible)",
        "rule.scale(result.raw, self._columns.alive.view(np.uint8))",
        naive,
    ),
)


def seeded(fault: Fault) -> object:
    """Return the method with the fault in it; raise ValueError if the method no longer contains the text."""
    source = textwrap.dedent(inspect.getsource(getattr(fault.of, fault.method)))
    if fault.text not in source:
        raise ValueError(f"{fault.of.__name__}.{fault.method} has no {fault.text!r}: update the fault")
    module = fault.of if isinstance(fault.of, ModuleType) else sys.modules[fault.of.__module__]
    found: dict[str, object] = {}
    exec(compile(source.replace(fault.text, fault.instead), f"<{fault.what}>", "exec"), vars(module), found)
    return found[fault.method]


def fails(test: Callable[..., None]) -> bool:
    """Return whether a test fails with at least one of the seeds."""
    parameters = inspect.signature(test).parameters
    for seed in SEEDS if "seed" in parameters else SEEDS[:1]:
        given = {"seed": seed, "log_limit": NO_LIMIT}
        try:
            test(**{name: value for name, value in given.items() if name in parameters})
        except Exception:
            return True
    return False


def is_caught(fault: Fault) -> bool:
    """Return whether the fault's test fails while the fault is in the engine."""
    before = getattr(fault.of, fault.method)
    setattr(fault.of, fault.method, seeded(fault))
    try:
        return fails(fault.test)
    finally:
        setattr(fault.of, fault.method, before)


if __name__ == "__main__":
    for number, fault in enumerate(FAULTS):
        print(json.dumps([number, is_caught(fault)]), flush=True)
    # Checks that the tests pass without a fault: a test that always fails would seem to catch every fault.
    print(json.dumps([-1, not any(fails(test) for test in dict.fromkeys(fault.test for fault in FAULTS))]))
