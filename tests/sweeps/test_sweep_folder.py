"""The folder of a sweep survives kills, and a sweep that is refused leaves it unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.sweeps.executors import LocalExecutor
from bayplan.sweeps.plan import SweepPlan, read_plan
from bayplan.sweeps.store import INPUT, JOURNAL, PLAN, SweepFolder
from bayplan.sweeps.sweep import run_sweep
from bayplan.sweeps.trials import Outcome, Trial
from tests.sweeps.sweeps import rows

PARTIAL = b'{"trial": {"number": 1, "can'


def outcome(number: int) -> Outcome:
    return Outcome(trial=Trial(number=number, candidate=0, parameters={}, seed=1))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'{"paths": ["a', id="a truncated plan"),
        pytest.param(b"", id="an empty plan"),
        pytest.param(b"[1]", id="a list"),
        pytest.param(b'{"paths": "\xff"}', id="no UTF-8"),
    ],
)
def test_a_folder_with_a_damaged_plan_is_refused(plan: SweepPlan, folder: Path, content: bytes) -> None:
    SweepFolder(folder / "out", plan)
    (folder / "out" / PLAN).write_bytes(content)
    with pytest.raises(InputError, match=r"--out: expected a new folder.*, got '.*out', whose sweep.json is damaged"):
        SweepFolder(folder / "out", plan)
    assert (folder / "out" / PLAN).read_bytes() == content


def test_the_plan_is_written_only_if_it_differs(plan: SweepPlan, folder: Path) -> None:
    SweepFolder(folder / "out", plan)
    before = (folder / "out" / PLAN).stat()
    SweepFolder(folder / "out", plan)
    after = (folder / "out" / PLAN).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    SweepFolder(folder / "out", read_plan(folder / "sweep.yaml", objective="utilisation"))
    assert b"utilisation" in (folder / "out" / PLAN).read_bytes()
    assert [path.name for path in (folder / "out").iterdir()] == [PLAN]


def test_a_refused_sweep_leaves_an_incomplete_line_to_the_process_that_writes_it(plan: SweepPlan, folder: Path) -> None:
    SweepFolder(folder / "out", plan).add(outcome(0))
    journal = folder / "out" / JOURNAL
    journal.write_bytes(journal.read_bytes() + PARTIAL)
    before = journal.read_bytes()
    with pytest.raises(InputError, match="contains another sweep"):
        SweepFolder(folder / "out", read_plan(folder / "sweep.yaml", search="random", trials=3))
    assert journal.read_bytes() == before


def test_an_incomplete_line_is_removed_before_the_next_one_is_added(plan: SweepPlan, folder: Path) -> None:
    SweepFolder(folder / "out", plan).add(outcome(0))
    journal = folder / "out" / JOURNAL
    journal.write_bytes(journal.read_bytes() + PARTIAL)
    store = SweepFolder(folder / "out", plan)
    assert list(store.done) == [0]
    store.add(outcome(1))
    assert list(SweepFolder(folder / "out", plan).done) == [0, 1]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(PARTIAL, id="truncated in the middle of the file"),
        pytest.param(b"{}", id="without a trial"),
        pytest.param(b"", id="empty"),
        pytest.param(b'{"trial": "\xff"}', id="no UTF-8"),
    ],
)
def test_a_damaged_line_of_the_journal_is_named(plan: SweepPlan, folder: Path, line: bytes) -> None:
    SweepFolder(folder / "out", plan).add(outcome(0))
    journal = folder / "out" / JOURNAL
    damaged = journal.read_bytes() + line + b"\n"
    journal.write_bytes(damaged)
    with pytest.raises(InputError, match=r"journal\.jsonl:2 the line is damaged .*; try deleting this line"):
        SweepFolder(folder / "out", plan)
    assert journal.read_bytes() == damaged


def test_damaged_digests_of_the_input_are_named(plan: SweepPlan, folder: Path) -> None:
    SweepFolder(folder / "out", plan).add(outcome(0))
    (folder / "out" / INPUT).write_bytes(b'{"a": 1')
    with pytest.raises(InputError, match=r"whose input.json is damaged"):
        SweepFolder(folder / "out", plan).check_input()


def test_a_finished_sweep_has_the_same_ranking_whatever_the_order_of_its_journal(plan: SweepPlan, folder: Path) -> None:
    first = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    journal = folder / "out" / JOURNAL
    journal.write_bytes(b"".join(reversed(journal.read_bytes().splitlines(keepends=True))))
    assert run_sweep(plan, folder / "out", lambda: LocalExecutor(plan)) == first


def test_outcomes_of_other_parameters_run_again(plan: SweepPlan, folder: Path) -> None:
    want = run_sweep(plan, folder / "whole", lambda: LocalExecutor(plan))
    run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    journal = folder / "out" / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    # As after a sweep of a version whose random search chose other sets, and more of them.
    lines[1] = msgspec.json.encode(outcome(1)) + b"\n"
    lines.append(msgspec.json.encode(outcome(8)) + b"\n")
    journal.write_bytes(b"".join(lines))
    ran: list[int] = []

    class Recorded(LocalExecutor):
        def run(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
            ran.extend(trial.number for trial in trials)
            return super().run(trials)

    assert run_sweep(plan, folder / "out", lambda: Recorded(plan)) == want
    assert ran == [1]
    assert rows(folder / "out") == rows(folder / "whole")


def test_a_number_of_trials_is_refused_for_a_grid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(folder / "sweep.yaml"), "--out", str(folder / "out"), "--trials", "3"]) == 2
    assert "--trials doesn't apply to a grid, which tries all sets; try --search random" in capsys.readouterr().err
