"""Sweeps: parameters become configurations, all executors agree, a killed sweep continues, Optuna and Ray work."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bayplan.base.errors import InputError
from bayplan.cli.main import main
from bayplan.reports.page import read_runs
from bayplan.sweeps.executors import Executor, LocalExecutor, ProcessExecutor, RayExecutor
from bayplan.sweeps.objectives import OBJECTIVES
from bayplan.sweeps.plan import SweepPlan, read_plan
from bayplan.sweeps.saving import label, save_results
from bayplan.sweeps.space import Choice, Range, grid, random_sets, read_space
from bayplan.sweeps.store import JOURNAL, SweepFolder
from bayplan.sweeps.sweep import Candidate, run_sweep
from bayplan.sweeps.trials import (
    Outcome,
    Trial,
    read_shared_input,
    run_trial,
    trial_configuration,
    trial_setup,
)
from tests.apiserver.serving import wait_until
from tests.sweeps.sweeps import CLUSTER, PACKED, SPREAD, STRATEGY, SWEEP, rows


def test_packing_leaves_room_for_the_large_pod(plan: SweepPlan, folder: Path) -> None:
    best = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))[0]
    assert best.parameters[STRATEGY] == PACKED
    assert best.score == 0


def test_process_and_local_executors_give_equal_results(plan: SweepPlan, folder: Path) -> None:
    run_sweep(plan, folder / "one", lambda: LocalExecutor(plan))
    run_sweep(plan, folder / "two", lambda: ProcessExecutor(plan, 2))
    assert rows(folder / "one") == rows(folder / "two")


def test_memory_is_freed_after_each_trial(plan: SweepPlan) -> None:
    def collections() -> int:
        return int(gc.get_stats()[2]["collections"])

    trials = [Trial(number=number, candidate=0, parameters={}, seed=number) for number in range(3)]
    before = [collections()]
    gc.disable()
    try:
        before += [collections() for _ in LocalExecutor(plan).run(trials)]
    finally:
        gc.enable()
    assert all(later > earlier for earlier, later in itertools.pairwise(before))


class KilledExecutor(LocalExecutor):
    """Runs some trials and then ends as if the process were killed."""

    def run(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
        for number, outcome in enumerate(super().run(trials)):
            if number == 3:
                raise KeyboardInterrupt
            yield outcome


def test_a_killed_sweep_resumes_with_the_remaining_trials(plan: SweepPlan, folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, folder / "out", lambda: KilledExecutor(plan))
    with (folder / "out" / JOURNAL).open("ab") as journal:
        journal.write(b'{"trial": {"num')  # An incomplete line, as a kill leaves it.
    ran: list[int] = []

    class Counted(LocalExecutor):
        def run(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
            ran.extend(trial.number for trial in trials)
            return super().run(trials)

    run_sweep(plan, folder / "out", lambda: Counted(plan))
    assert ran == [3, 4, 5, 6, 7]
    run_sweep(plan, folder / "whole", lambda: LocalExecutor(plan))
    assert rows(folder / "out") == rows(folder / "whole")


def test_a_finished_sweep_starts_no_executor(plan: SweepPlan, folder: Path) -> None:
    first = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    assert run_sweep(plan, folder / "out", refuse) == first


def refuse() -> Executor:
    raise AssertionError("an executor was started")


def test_a_finished_sweep_is_ranked_by_another_objective_without_running_it_again(
    plan: SweepPlan, folder: Path
) -> None:
    run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    other = read_plan(folder / "sweep.yaml", objective="utilisation")
    found = run_sweep(other, folder / "out", refuse)
    assert found == run_sweep(other, folder / "new", lambda: LocalExecutor(other))
    scores = [each.score or 0.0 for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(row["objective"] == row["utilisation"] for row in rows(folder / "out"))


@pytest.mark.filterwarnings("ignore")
def test_optuna_keeps_its_objective_until_its_sweep_is_finished(folder: Path) -> None:
    pytest.importorskip("optuna")
    plan, other = (
        read_plan(folder / "sweep.yaml", search="optuna", trials=9, objective=name) for name in ("waiting_time", "cost")
    )
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, folder / "out", lambda: KilledExecutor(plan))
    with pytest.raises(InputError, match="objective: expected waiting_time, for which Optuna chose the first sets"):
        run_sweep(other, folder / "out", refuse)
    first = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    found = run_sweep(other, folder / "out", refuse)
    assert {each.number: each.parameters for each in found} == {each.number: each.parameters for each in first}


def test_a_folder_of_a_different_sweep_is_refused(plan: SweepPlan, folder: Path) -> None:
    SweepFolder(folder / "out", plan)
    other = read_plan(folder / "sweep.yaml", search="random", trials=3)
    with pytest.raises(InputError, match="contains another sweep"):
        SweepFolder(folder / "out", other)


def test_the_results_table_has_a_column_per_parameter_and_figure(plan: SweepPlan, folder: Path) -> None:
    run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    found = rows(folder / "out")
    assert [row["trial"] for row in found] == list(range(8))
    assert {row[STRATEGY] for row in found} == {SPREAD, PACKED}
    assert all(row["objective"] == row["mean_wait_s"] and row["bound"] == 3 and row["digest"] for row in found)


def test_an_invalid_trial_configuration_is_an_error_outcome(plan: SweepPlan) -> None:
    trial = Trial(number=0, candidate=0, parameters={STRATEGY: "Nonsense"}, seed=0)
    outcome = run_trial(plan, read_shared_input(plan), trial)
    assert "scoringStrategy" in outcome.error


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        pytest.param({"weight.NodeResourcesFit": 7}, {"NodeResourcesFit": 7}, id="a weight"),
        pytest.param({"weight.NodeResourcesFit": 0}, {"NodeResourcesFit": None}, id="no scores"),
        pytest.param({"weight.BestFit": 3}, {"BestFit": 3, "NodeResourcesFit": 1}, id="a plugin of no default profile"),
    ],
)
def test_weight_parameters_set_scheduler_weights(
    plan: SweepPlan, parameters: dict[str, int], want: dict[str, int | None]
) -> None:
    (profile,) = trial_setup(plan, parameters).configuration.profiles
    weights = {entry.name: entry.weight for entry in profile.plugins["score"]}
    assert {name: weights.get(name) for name in want} == want


def test_parameters_preserve_other_arguments_of_the_base_configuration() -> None:
    args = {"scoringStrategy": {"type": SPREAD, "resources": [{"name": "cpu", "weight": 2}]}}
    base = {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}]}
    found = trial_configuration(base, {STRATEGY: PACKED, "percentageOfNodesToScore": 40})
    strategy = found["profiles"][0]["pluginConfig"][0]["args"]["scoringStrategy"]
    assert strategy == {"type": PACKED, "resources": [{"name": "cpu", "weight": 2}]}
    assert found["percentageOfNodesToScore"] == 40
    assert args["scoringStrategy"]["type"] == SPREAD


def test_node_shapes_replace_input_nodes(folder: Path) -> None:
    text = """\
paths: [cluster.yaml]
objective: cost
shapes:
  small: {cpu: "2", memory: 4Gi, price: "1"}
  large: {cpu: "8", memory: 16Gi, price: "3"}
parameters: {shape: [small, large], nodes: [1, 3]}
"""
    (folder / "shapes.yaml").write_text(text)
    plan = read_plan(folder / "shapes.yaml")
    run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    found = {(row["shape"], row["nodes"]): row for row in rows(folder / "out")}
    assert found["small", 1]["waiting"] == 1  # The large pod fits no small node.
    assert found["large", 1]["waiting"] == 0
    assert found["large", 3]["cost"] == pytest.approx(3 * found["large", 1]["cost"])


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("parameters: {shape: [a]}\nobjectiv: cost\n", "objectiv", id="an unknown field"),
        pytest.param("parameters: {}\n", "parameters", id="no parameters"),
        pytest.param("parameters: {a: {min: 3, max: 1}}\n", "parameter a", id="an empty range"),
        pytest.param("parameters: {a: [1]}\nobjective: speed\n", "objective", id="an unknown objective"),
        pytest.param("[", "sweep", id="no YAML"),
        pytest.param("", "an empty file", id="an empty file"),
        pytest.param("parameters: {a: [1]}\nuntil: 600\n", "until: expected a duration", id="a time without a unit"),
        pytest.param("parameters: {a: [1]}\nuntil: -1h\n", "until: expected a positive duration", id="a negative time"),
        pytest.param("parameters: {a: [1]}\nuntil: 0\n", "until: expected a positive duration", id="no time"),
        pytest.param("parameters: {a: [1]}\ntrials: 0\n", "trials: expected an integer of at least 1", id="no trials"),
        pytest.param("parameters: {a: [1]}\nseeds: [1, 2, 1]\n", "1 more than once", id="a repeated seed"),
        pytest.param("parameters: {a: [1]}\nshapes: {s: {cpu: 4x}}\n", "shapes.s.cpu", id="a shape without a quantity"),
        pytest.param("parameters: {a: [1]}\nshapes: {s: {price: low}}\n", "shapes.s.price", id="an invalid price"),
        pytest.param(
            "parameters: {a: [1]}\nshapes: {s: {memory: 16}}\n",
            "got 16 bytes; try memory: 16Gi",
            id="memory without a unit",
        ),
        pytest.param(
            "parameters: {wieght.NodeResourcesFit: [1]}\n", "try weight.NodeResourcesFit", id="an unknown parameter"
        ),
        pytest.param(
            "parameters: {nodes: [1]}\n", "shapes, for the parameter nodes: expected", id="nodes without shapes"
        ),
        pytest.param(
            "parameters: {nodes: [1]}\nshapes: {s: {cpu: 4}, t: {cpu: 8}}\n",
            "expected one of the shapes s, t",
            id="no shape",
        ),
        pytest.param(
            "parameters: {shape: [sml]}\nshapes: {sm: {cpu: 4}}\n", "got 'sml'; try sm", id="an unknown shape"
        ),
    ],
)
def test_an_invalid_sweep_file_is_refused(tmp_path: Path, text: str, want: str) -> None:
    (tmp_path / "sweep.yaml").write_text(text)
    with pytest.raises(InputError, match=want):
        read_plan(tmp_path / "sweep.yaml")


def test_a_grid_contains_all_combinations() -> None:
    space = {"a": Choice((1, 2)), "b": Choice(("x", "y"))}
    want = [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}, {"a": 2, "b": "y"}]
    assert list(grid(space)) == want


def test_a_grid_over_a_range_is_refused() -> None:
    with pytest.raises(InputError, match="a range"):
        list(grid({"a": Range(0, 1, False)}))


@pytest.mark.parametrize("random", [0.0, 0.5, 0.999999])
def test_drawn_parameters_stay_in_range(random: float) -> None:
    space = read_space({"a": {"min": 1, "max": 3}, "b": {"min": 0.5, "max": 2.0, "log": True}, "c": ["x"]}, "")
    [found] = random_sets(space, 1, lambda: random)
    assert found["a"] in (1, 2, 3)
    assert isinstance(found["b"], float)
    assert 0.5 <= found["b"] <= 2.0
    assert found["c"] == "x"


def test_random_search_is_reproducible(folder: Path) -> None:
    plan = read_plan(folder / "sweep.yaml", search="random", trials=3)

    def run(name: str) -> list[Candidate]:
        return run_sweep(plan, folder / name, lambda: LocalExecutor(plan))

    assert run("a") == run("b")
    assert len(rows(folder / "a")) == 6


@pytest.mark.filterwarnings("ignore")
def test_optuna_gives_equal_results_on_every_executor(folder: Path) -> None:
    plan = read_plan(folder / "sweep.yaml", search="optuna", trials=10)
    run_sweep(plan, folder / "one", lambda: LocalExecutor(plan))
    best = run_sweep(plan, folder / "two", lambda: ProcessExecutor(plan, 2))[0]
    assert rows(folder / "one") == rows(folder / "two")
    assert best.parameters[STRATEGY] == PACKED


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs ray, which make test-ray installs")
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_equal_results_when_a_node_is_killed(folder: Path) -> None:
    from ray.cluster_utils import Cluster

    plan = read_plan(folder / "sweep.yaml")
    run_sweep(plan, folder / "one", lambda: LocalExecutor(plan))
    cluster = Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    try:
        finished = 0

        def kill_one(done: int, total: int) -> None:
            nonlocal finished
            finished = done
            if done == 2 and len(nodes) == 2:
                cluster.remove_node(nodes.pop(), allow_graceful=False)

        run_sweep(plan, folder / "ray", lambda: RayExecutor(plan, workers=2), kill_one)
    finally:
        cluster.shutdown()
    assert finished == 8
    assert len(nodes) == 1
    assert rows(folder / "one") == rows(folder / "ray")


AUTOSCALER = """\
apiVersion: bayplan.io/v1alpha1
kind: Autoscaler
nodeGroups:
- {name: c, maxSize: 1, price: 7, startUpDelay: 1m, template: {status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}}}
"""
WORKLOAD = """\
apiVersion: bayplan.io/v1alpha1
kind: Workload
sample: 0.5
"""
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: old
  pluginConfig: [{name: PodLifeTime, args: {maxPodLifeTimeSeconds: 600}}]
  plugins: {deschedule: {enabled: [PodLifeTime]}}
"""


def test_autoscaler_and_descheduler_run_in_each_trial(folder: Path) -> None:
    (folder / "scaling.yaml").write_text(AUTOSCALER)
    (folder / "policy.yaml").write_text(POLICY)
    text = CLUSTER.replace("metadata: {name: small-1,", "metadata: {name: small-1, ownerReferences: [OWNER],").replace(
        "OWNER", "{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}"
    )
    (folder / "cluster.yaml").write_text(text)
    (folder / "sweep.yaml").write_text(SWEEP + "autoscaler: scaling.yaml\ndescheduler: policy.yaml\nobjective: cost\n")
    plan = read_plan(folder / "sweep.yaml")
    run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    by_strategy = {row[STRATEGY]: row for row in rows(folder / "out")}
    assert {name: row["nodes_added"] for name, row in by_strategy.items()} == {SPREAD: 1, PACKED: 0}
    assert by_strategy[SPREAD]["cost"] > by_strategy[PACKED]["cost"]
    assert by_strategy[PACKED]["descheduled"] == 1


def test_a_workload_shapes_the_trace_of_each_trial(folder: Path) -> None:
    tasks = "".join(f"p{number},1000,1000,0,0,,LS,Running,0,100,0\n" for number in range(8))
    columns = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    (folder / "tasks.csv").write_text(f"{columns}\n{tasks}")
    (folder / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn,8000,80000,0,\n")
    (folder / "workload.yaml").write_text(WORKLOAD)
    (folder / "sweep.yaml").write_text(
        "paths: [tasks.csv, nodes.csv]\nworkload: workload.yaml\nparameters: {percentageOfNodesToScore: [100]}\n"
    )
    plan = read_plan(folder / "sweep.yaml")
    run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    assert [row["pods"] for row in rows(folder / "out")] == [4]


def test_the_best_candidates_are_saved_for_a_report(folder: Path) -> None:
    assert main(["sweep", str(folder / "sweep.yaml"), "--out", str(folder / "out"), "--save", "2"]) == 0
    runs = read_runs([str(folder / "out")])
    want = {f"type={PACKED}, NodeResourcesFit={weight}": [1, 2] for weight in (1, 100)}
    assert {label: [run.facts.seed for run in group] for label, group in runs.items()} == want
    digests = {row["digest"] for row in rows(folder / "out") if row[STRATEGY] == PACKED}
    assert {run.facts.digest for group in runs.values() for run in group} == digests


def test_saving_results_with_a_different_digest_is_refused(plan: SweepPlan, folder: Path) -> None:
    best = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    (folder / "cluster.yaml").write_text(CLUSTER.replace('requests: {cpu: "4"}', 'requests: {cpu: "2"}'))
    with pytest.raises(InputError, match="digest of trial"):
        list(save_results(plan, folder / "out", best))


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        pytest.param({"a.b.c": 1, "d": "x/y"}, "c=1, d=x-y", id="the last part"),
        pytest.param({"weight.Fit": 1, "args.Fit": 2}, "weight.Fit=1, args.Fit=2", id="two with the same last part"),
    ],
)
def test_labels_are_as_short_as_uniqueness_allows(parameters: dict[str, Any], want: str) -> None:
    assert label(parameters) == want


@pytest.mark.parametrize(
    ("name", "score", "want"),
    [
        pytest.param("waiting_time", 12.5, "12.5 s", id="seconds"),
        pytest.param("utilisation", 0.6134, "61.34 %", id="a share"),
        pytest.param("evictions", 3.0, "3 pods", id="a number of pods"),
        pytest.param("cost", 1234.5, "1,234", id="hours times prices have no unit"),
    ],
)
def test_scores_are_printed_with_their_unit(name: str, score: float, want: str) -> None:
    assert OBJECTIVES[name].format_score(score) == want


def test_the_sweep_command_prints_the_best_candidates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", str(folder / "sweep.yaml"), "--out", str(folder / "out"), "--executor", "local"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("waiting_time (mean waiting time of pods")
    assert f"{STRATEGY}={PACKED}" in printed[1]
    assert " s  " in printed[1]
    assert printed[-1].endswith("trials.parquet: 8 trials")
    assert not any("same score" in line for line in printed)


@pytest.mark.parametrize(
    ("until", "has_note"),
    [pytest.param("", True, id="without until"), pytest.param("until: 2h\n", False, id="with until")],
)
def test_the_sweep_command_warns_of_pods_that_are_left_pending(
    folder: Path, capsys: pytest.CaptureFixture[str], until: str, has_note: bool
) -> None:
    text = "paths: [cluster.yaml]\nshapes: {s: {cpu: 2, memory: 4Gi}}\nparameters: {nodes: [0, 2, 4]}\n"
    (folder / "few.yaml").write_text(text + until)
    assert main(["sweep", str(folder / "few.yaml"), "--out", str(folder / "few"), "--executor", "local"]) == 0
    assert ("Up to 3 pods are still pending at the end of 3 sets." in capsys.readouterr().out) == has_note


def test_the_sweep_command_lists_each_set_and_each_error_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = f"{{{STRATEGY}: [{PACKED}, {SPREAD}, {PACKED}, Nonsense], weight.NodeResourcesFit: [1, 2]}}"
    (folder / "sweep.yaml").write_text(f"paths: [cluster.yaml]\nparameters: {space}\n")
    arguments = ["--out", str(folder / "out"), "--executor", "local", "--best", "3", "--save", "5"]
    assert main(["sweep", str(folder / "sweep.yaml"), *arguments]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.endswith("lowest first; seed 0")
    assert [line.split()[0] for line in lines[:3]] == ["0", "0", "1,200"]
    assert lines[3] == "  and 1 more set (--best)"
    assert f"failed  {STRATEGY}=Nonsense, weight.NodeResourcesFit=1 and 1 other set: " in lines[4]
    assert lines[5].endswith("trials.parquet: 8 trials")
    assert "4 result directories" in lines[6]


def test_long_labels_are_shortened_for_the_file_system(folder: Path) -> None:
    shape = "x" * 250
    text = f"paths: [cluster.yaml]\nshapes: {{{shape}: {{cpu: 4}}}}\nparameters: {{nodes: [2], shape: [{shape}]}}\n"
    (folder / "sweep.yaml").write_text(text)
    plan = read_plan(folder / "sweep.yaml")
    best = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    (saved,) = save_results(plan, folder / "out", best)
    assert len(saved.parent.name) < 255
    assert saved.parent.name.endswith("..., set 0")
    assert saved.is_dir()


def test_the_sweep_command_reports_that_no_parameter_matters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--out", str(folder / "out"), "--executor", "local", "--objective", "evictions"]
    assert main(["sweep", str(folder / "sweep.yaml"), *arguments]) == 0
    assert (
        "All sets have the same score: these parameters do not change this objective here." in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("package", "options"), [("ray", ["--executor", "ray"]), ("optuna", ["--search", "optuna"])], ids=["ray", "optuna"]
)
def test_a_missing_package_is_reported_with_its_install_command(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, package: str, options: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["sweep", str(folder / "sweep.yaml"), "--out", str(folder / "out"), *options]) == 2
    assert f"pip install '.[{package}]'" in capsys.readouterr().err


def test_a_trial_that_a_signal_kept_out_of_the_journal_is_not_in_the_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SweepFolder(folder / "out", read_plan(folder / "sweep.yaml"))

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.add(Outcome(trial=Trial(number=0, candidate=0, parameters={}, seed=0)))
    store.write_table()
    assert rows(folder / "out") == []


@pytest.mark.parametrize(
    ("number", "want"),
    [pytest.param(signal.SIGINT, 130, id="Ctrl-C"), pytest.param(signal.SIGTERM, 143, id="SIGTERM")],
)
def test_an_interrupted_sweep_ends_its_workers_without_tracebacks(folder: Path, number: int, want: int) -> None:
    (folder / "sweep.yaml").write_text(SWEEP.replace("[1, 2]", f"{list(range(10_000))}"))
    command = [sys.executable, "-m", "bayplan", "sweep", "sweep.yaml", "--out", "out", "--workers", "2"]
    journal = folder / "out" / JOURNAL
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        wait_until(journal.exists)
        # A terminal sends Ctrl-C to all processes of the group, but kill ends only the given process.
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == want
    assert "Traceback" not in printed
    assert ("run the same command again" in printed) == (number == signal.SIGINT)
    assert len(rows(folder / "out")) == len(journal.read_text().splitlines())
