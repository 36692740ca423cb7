"""Selecting tasks of a trace by window, sample and limit gives the same tasks as a plain sort and filter."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.formats.traces import selection as selection_module
from bayplan.formats.traces.earliest_keys import EarliestKeys
from bayplan.formats.traces.pods import timed_pods
from bayplan.formats.traces.selection import Sample, SelectedTasks, Selection, Task
from bayplan.formats.traces.shapes import Shape
from tests.formats.traces.reading import load, sample, times

SHAPE = Shape(amounts=(("cpu", "1"),))
TASKS = st.lists(
    st.tuples(st.integers(-5, 20), st.one_of(st.none(), st.integers(0, 10)), st.integers(1, 4)), max_size=12
)


def selected(tasks: list[Task], selection: Selection) -> list[Task]:
    keeper = SelectedTasks(selection)
    for task in tasks:
        if task.arrival_ns < keeper.horizon_ns:
            keeper.add(task)
    return keeper.tasks()


def made(rows: list[tuple[int, int | None, int]]) -> list[Task]:
    return [
        Task(
            name=f"t{number}",
            shape=SHAPE,
            arrival_ns=arrival,
            run_time_ns=run,
            end_ns=None if run is None else arrival + run,
            instances=count,
            count=count,
        )
        for number, (arrival, run, count) in enumerate(rows)
    ]


@settings(max_examples=300, deadline=None)
@given(TASKS, st.integers(0, 10), st.one_of(st.none(), st.integers(11, 18)), st.booleans(), st.integers(1, 12))
def test_a_limit_selects_the_first_pods_by_arrival(
    rows: list[tuple[int, int | None, int]], start: int, until: int | None, running: bool, limit: int
) -> None:
    tasks = made(rows)
    window = Selection(from_ns=start, until_ns=until, running=running)
    every = [(task, number) for task in selected(tasks, window) for number in range(task.count)]
    first = sorted(every, key=lambda pair: pair[0].arrival_ns)[:limit]
    chosen = {task.name for task, _ in first}
    limited = selected(tasks, Selection(from_ns=start, until_ns=until, running=running, limit=limit))
    assert sorted(task.name for task in limited for _ in range(task.count)) == sorted(task.name for task, _ in first)
    assert [task.name for task in limited] == [task.name for task in tasks if task.name in chosen]


@pytest.mark.parametrize(
    ("window", "want"),
    [
        pytest.param(
            {}, {"before": (0, 25), "first": (10, 5), "last": (40, None)}, id="all, and what ran at the start"
        ),
        pytest.param({"from_ns": 20}, {"before": (0, 5), "last": (20, None)}, id="from: what still ran has the rest"),
        pytest.param({"from_ns": 20, "running": False}, {"last": (20, None)}, id="arrivals only"),
        pytest.param({"until_ns": 40}, {"before": (0, 25), "first": (10, 5)}, id="until is not part of it"),
    ],
)
def test_a_window_selects_tasks_and_shortens_those_already_running(
    window: dict[str, int], want: dict[str, tuple[int, int | None]]
) -> None:
    tasks = [
        Task(name="before", shape=SHAPE, arrival_ns=-5, run_time_ns=30, end_ns=25),
        Task(name="first", shape=SHAPE, arrival_ns=10, run_time_ns=5, end_ns=15),
        Task(name="last", shape=SHAPE, arrival_ns=40),
        Task(name="long ago", shape=SHAPE, arrival_ns=-5, run_time_ns=5, end_ns=0),
    ]
    found = selected(tasks, Selection(**window))  # type: ignore[arg-type]
    assert {task.name: (task.arrival_ns, task.run_time_ns) for task in found} == want


def test_a_sample_contains_whole_jobs_and_depends_only_on_the_seed() -> None:
    jobs = [f"j_{number}" for number in range(20_000)]
    drawn = Sample(Selection(sample=0.1, seed=7))
    chosen = {job for job in jobs if drawn.has(job)}
    assert len(chosen) == pytest.approx(2000, rel=0.1)
    again = Sample(Selection(sample=0.1, seed=7))
    assert {job for job in reversed(jobs) if again.has(job)} == chosen
    other = Sample(Selection(sample=0.1, seed=8))
    assert len({job for job in jobs if other.has(job)} & chosen) == pytest.approx(200, rel=0.4)
    larger = Sample(Selection(sample=0.2, seed=7))
    assert all(larger.has(job) for job in chosen)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 50)), max_size=200), st.integers(1, 5))
def test_earliest_keys_match_a_sort_by_earliest_time(events: list[tuple[int, int]], limit: int) -> None:
    found: EarliestKeys[int] = EarliestKeys(limit, slack=2)
    earliest: dict[int, int] = {}
    for key, time in events:
        found.add(key, time)
        earliest[key] = min(time, earliest.get(key, time))
    cut = sorted(earliest.values())[:limit]
    assert sorted(earliest[key] for key in found.keys()) == cut  # noqa: SIM118 - no dictionary


def test_too_many_pods_without_a_limit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "batch_task.csv"
    path.write_text(f"M1,{selection_module.MAX_PODS + 1},j_1,1,Terminated,1,2,100,0.3\n")
    with pytest.raises(
        InputError, match=r"expected a selection of at most 2,000,000 pods, got more; try limit: 100000"
    ):
        load(path)


def test_a_limit_truncates_the_pods_of_a_task(tmp_path: Path) -> None:
    trace = sample("alibaba-2018/batch_task.csv", "limit: 3\n", tmp_path)
    assert list(times(trace.pods)) == ["j-1-m1-0", "j-1-m1-1", "j-1-m1-2"]


def test_pods_share_specs_and_annotations_and_have_unique_names() -> None:
    tasks = [Task(name="A b", job="j", shape=Shape(amounts=(("cpu", "1"),)), arrival_ns=0) for _ in range(3)]
    pods = [each.pod for each in timed_pods(tasks)]
    assert [pod.metadata.name for pod in pods] == ["a-b", "a-b-2", "a-b-3"]
    assert len({id(pod.spec) for pod in pods}) == len({id(pod.metadata.annotations) for pod in pods}) == 1


def test_the_seed_determines_the_sampled_machines(tmp_path: Path) -> None:
    def names(seed: int) -> list[str]:
        trace = sample("alibaba-2018/machine_meta.csv", f"nodes: 2\nseed: {seed}\n", tmp_path)
        return [node.metadata.name for node in trace.nodes]

    found = [names(seed) for seed in range(8)]
    assert all(len(each) == 2 for each in found)
    assert len({tuple(each) for each in found}) > 1
    assert names(0) == found[0]
