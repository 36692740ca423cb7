"""Sweeps: errors of the configuration and of parameters, custom plugins, new nodes, and input that changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bayplan.base.errors import InputError
from bayplan.sweeps.executors import LocalExecutor
from bayplan.sweeps.plan import SweepPlan, read_plan
from bayplan.sweeps.space import Choice, unknown_parameter
from bayplan.sweeps.sweep import run_sweep
from bayplan.sweeps.trials import Trial, read_shared_input, run_trial, trial_inputs, trial_setup
from tests.sweeps.sweeps import CLUSTER, SWEEP, rows


def test_a_configuration_file_that_is_no_yaml_is_refused(folder: Path) -> None:
    (folder / "scheduler.yaml").write_text("profiles: [")
    (folder / "sweep.yaml").write_text(SWEEP + "config: scheduler.yaml\n")
    with pytest.raises(InputError, match=r"scheduler\.yaml config: expected YAML"):
        read_plan(folder / "sweep.yaml")


def test_shapes_that_no_parameter_uses_are_refused(folder: Path) -> None:
    (folder / "sweep.yaml").write_text(SWEEP + "shapes: {big: {cpu: 8, memory: 32Gi}}\n")
    want = "shapes: no parameter uses them; try the parameter shape: .big"
    with pytest.raises(InputError, match=want):
        read_plan(folder / "sweep.yaml")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        pytest.param("weights.NodeResourcesFit", "weight.NodeResourcesFit", id="a misspelt kind"),
        pytest.param("weight", "weight.PLUGIN", id="no plugin"),
        pytest.param("arg.NodeResourcesFit", "args.NodeResourcesFit.FIELD", id="no field"),
        pytest.param(
            "arg.NodeAffinity.addedAffinity", "args.NodeAffinity.addedAffinity", id="a misspelt kind with field"
        ),
        pytest.param("args", "args.PLUGIN.FIELD", id="neither plugin nor field"),
        pytest.param("nodes.prod-pool", "nodes", id="a part that the kind does not have"),
    ],
)
def test_unknown_parameters_are_refused_with_a_valid_suggestion(name: str, hint: str) -> None:
    assert unknown_parameter(name).hint == hint


@pytest.mark.parametrize(
    ("config", "want"),
    [
        pytest.param("{profiles: none}", r"\$.profiles", id="a text for a list"),
        pytest.param("{profiles: [{plugins: {score: {enabled: [{weight: 3}]}}}]}", "does not exist", id="no name"),
    ],
)
def test_an_invalid_base_configuration_ends_the_sweep(folder: Path, config: str, want: str) -> None:
    (folder / "sweep.yaml").write_text(SWEEP + f"config: {config}\n")
    plan = read_plan(folder / "sweep.yaml")
    with pytest.raises(InputError, match=want):
        run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    assert not (folder / "out").exists()


def test_profiles_of_other_schedulers_end_the_sweep(folder: Path) -> None:
    (folder / "sweep.yaml").write_text(SWEEP + "config: {profiles: [{schedulerName: default-schedular}]}\n")
    plan = read_plan(folder / "sweep.yaml")
    want = (
        "config: expected a profile for the pods of the scheduler default-scheduler, got profiles for default-schedular; "
        "try schedulerName: default-scheduler instead of default-schedular"
    )
    with pytest.raises(InputError, match=re.escape(want)):
        run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        pytest.param(
            "weight.NodeUnschedulable: [0, 2]",
            "parameter weight.NodeUnschedulable: expected a score plugin",
            id="a weight of a plugin without scores",
        ),
        pytest.param(
            "weight.NodeResourceFit: [0, 2]", "try weight.NodeResourcesFit", id="a weight of a misspelt plugin"
        ),
        pytest.param(
            "args.NodeResourceFit.scoringStrategy.type: [MostAllocated]",
            "try args.NodeResourcesFit.scoringStrategy.type",
            id="an argument of a misspelt plugin",
        ),
        pytest.param("args.NodeName.a: [1]", "expected a plugin with arguments", id="a plugin without arguments"),
        pytest.param(
            "args.NodeResourcesFit.scoringStrateg.type: [MostAllocated, LeastAllocated]",
            "unknown field; try 'scoringStrategy'",
            id="a misspelt argument",
        ),
    ],
)
def test_a_parameter_that_fails_in_all_trials_ends_the_sweep(folder: Path, parameters: str, want: str) -> None:
    (folder / "sweep.yaml").write_text(f"paths: [cluster.yaml]\nparameters: {{{parameters}}}\n")
    plan = read_plan(folder / "sweep.yaml")
    with pytest.raises(InputError, match=re.escape(want)):
        run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        pytest.param("weight.NodeResourcesFit: [1, -1]", "integers of at least 0, got -1", id="a negative weight"),
        pytest.param("weight.NodeResourcesFit: {min: 1, max: 2.5}", "at least 0, got 2.5", id="a fraction as weight"),
        pytest.param("percentageOfNodesToScore: [120]", "integers from 0 to 100, got 120", id="a share above 100"),
        pytest.param("nodes: [x], shape: [s]", "integers of at least 0, got 'x'", id="a text for nodes"),
        pytest.param("shape: {min: 1, max: 2}", "expected a list of names of shapes", id="a range of shapes"),
        pytest.param("args.NodeResourcesFit: [1]", "expected args.PLUGIN.FIELD", id="an argument without field"),
    ],
)
def test_a_value_that_no_configuration_allows_is_refused(folder: Path, parameters: str, want: str) -> None:
    (folder / "sweep.yaml").write_text(f"shapes: {{s: {{cpu: 4}}}}\nparameters: {{{parameters}}}\n")
    with pytest.raises(InputError, match=re.escape(want)):
        read_plan(folder / "sweep.yaml")


@pytest.mark.parametrize("kinds", ["[List]", "[System, List]"], ids=["all sets", "one of two sets"])
def test_a_parameter_may_correct_the_base_configuration(folder: Path, kinds: str) -> None:
    constraint = "{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}"
    args = f"{{name: PodTopologySpread, args: {{defaultConstraints: [{constraint}]}}}}"
    config = f"config: {{profiles: [{{pluginConfig: [{args}]}}]}}"
    parameters = f"parameters: {{args.PodTopologySpread.defaultingType: {kinds}}}"
    (folder / "sweep.yaml").write_text(f"paths: [cluster.yaml]\n{config}\n{parameters}\n")
    plan = read_plan(folder / "sweep.yaml")
    best = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))[0]
    assert (best.parameters["args.PodTopologySpread.defaultingType"], best.error) == ("List", "")


@pytest.mark.parametrize(
    ("parameters", "want"),
    [
        pytest.param({"nodes": "x", "shape": "s"}, "parameter nodes: expected an integer", id="a text for nodes"),
        pytest.param(
            {"nodes": -2, "shape": "s"}, "parameter nodes: expected an integer", id="a negative number of nodes"
        ),
        pytest.param({"args.F.a": "x", "args.F.a.b": 1}, "a field of 'x'", id="a field of a text"),
        pytest.param({"weight.NodeUnschedulable": 2}, "expected a score plugin", id="a weight of a filter plugin"),
    ],
)
def test_an_invalid_parameter_is_an_error_outcome(folder: Path, parameters: dict[str, Any], want: str) -> None:
    text = "paths: [cluster.yaml]\nshapes: {s: {cpu: 4}}\nparameters: {shape: [s]}\n"
    (folder / "sweep.yaml").write_text(text)
    plan = read_plan(folder / "sweep.yaml")
    trial = Trial(number=0, candidate=0, parameters=parameters, seed=0)
    assert want in run_trial(plan, read_shared_input(plan), trial).error


PLUGIN = """\
from bayplan import PerNodePlugin

class PrefersB(PerNodePlugin):
    def filter_node(self, pod, node):
        return None if pod.metadata.name != "large" else "node(s) were small"

    def score_node(self, pod, node):
        return 100 if node.name == "b" else 0
"""


def test_weight_zero_disables_only_the_scores_of_a_custom_plugin(folder: Path) -> None:
    (folder / "mine.py").write_text(PLUGIN)
    parameters = "{weight.PrefersB: [0, 1000]}"
    (folder / "sweep.yaml").write_text(
        f"paths: [cluster.yaml]\nplugins: [mine.py:PrefersB]\nparameters: {parameters}\n"
    )
    plan = read_plan(folder / "sweep.yaml")
    assert run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))[0].error == ""
    found = {row["weight.PrefersB"]: row for row in rows(folder / "out")}
    assert found[0]["digest"] != found[1000]["digest"]
    assert [found[weight]["bound"] for weight in (0, 1000)] == [2, 2]
    scorers = [
        entry.name for entry in trial_setup(plan, {"weight.PrefersB": 0}).configuration.profiles[0].plugins["score"]
    ]
    assert "PrefersB" not in scorers


@pytest.mark.parametrize(
    ("plugins", "filters"),
    [
        pytest.param({}, True, id="a plugin that the profile does not name"),
        pytest.param(None, True, id="a profile with empty plugins"),
        pytest.param({"score": {"enabled": [{"name": "PrefersB", "weight": 3}]}}, False, id="enabled at Score"),
        pytest.param({"score": {"disabled": [{"name": "PrefersB"}]}}, False, id="disabled at Score"),
        pytest.param(
            {"score": {"disabled": [{"name": "*"}]}, "multiPoint": {"enabled": [{"name": "PrefersB"}]}}, True,
            id="enabled at all points, all plugins disabled at Score",
        ),
        pytest.param({"multiPoint": {"enabled": [{"name": "PrefersB", "weight": 3}]}}, True, id="enabled at all points"),
        pytest.param(
            {
                "multiPoint": {"enabled": [{"name": "PrefersB", "weight": 3}]},
                "score": {"enabled": [{"name": "PrefersB", "weight": 4}]},
            },
            True, id="enabled at both",
        ),
    ],
)  # fmt: skip
def test_the_weight_of_a_custom_plugin_takes_effect_wherever_the_profile_names_it(
    folder: Path, plugins: dict[str, Any] | None, filters: bool
) -> None:
    (folder / "mine.py").write_text(PLUGIN)
    config = {"profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}]}
    plan = SweepPlan(
        paths=[], space={"weight.PrefersB": Choice((1, 7))}, config=config, plugins=[f"{folder / 'mine.py'}:PrefersB"]
    )
    for weight in (1, 7):
        (profile,) = trial_setup(plan, {"weight.PrefersB": weight}).configuration.profiles
        assert [each.weight for each in profile.plugins["score"] if each.name == "PrefersB"] == [weight]
        assert ("PrefersB" in [each.name for each in profile.plugins["filter"]]) == filters


def test_new_nodes_are_spread_over_the_zones_of_the_input(folder: Path) -> None:
    text = CLUSTER.replace("{name: a}", "{name: a, labels: {LABELS, topology.kubernetes.io/zone: z1}}").replace(
        "{name: b}", "{name: b, labels: {LABELS, topology.kubernetes.io/zone: z2}}"
    )
    (folder / "cluster.yaml").write_text(text.replace("LABELS", "kubernetes.io/os: linux, pool: general"))
    (folder / "sweep.yaml").write_text("paths: [cluster.yaml]\nshapes: {s: {cpu: 4}}\nparameters: {nodes: [3]}\n")
    plan = read_plan(folder / "sweep.yaml")
    nodes = trial_inputs(plan, read_shared_input(plan).inputs, {"nodes": 3})
    assert nodes.trace is not None
    assert [each.metadata.labels for each in nodes.trace.nodes] == [
        {"kubernetes.io/hostname": f"s-000{number}", "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": zone}
        for number, zone in enumerate(["z1", "z2", "z1"])
    ]


def test_pending_pods_wait_until_the_requested_time(folder: Path) -> None:
    text = "paths: [cluster.yaml]\nuntil: 2h\nshapes: {s: {cpu: 4}}\nparameters: {shape: [s], nodes: [0]}\n"
    (folder / "sweep.yaml").write_text(text)
    plan = read_plan(folder / "sweep.yaml")
    assert run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))[0].score == 7200


@pytest.mark.parametrize(
    ("annotation", "want"),
    [
        pytest.param("annotations: {bayplan.io/run-time: 1h}", (2.0, 0.25), id="until all pods have ended"),
        pytest.param("annotations: {}", (4.0, 0.1875), id="until the requested time if a pod runs on"),
    ],
)
def test_cost_and_utilisation_count_as_long_as_pods_run(
    folder: Path, annotation: str, want: tuple[float, float]
) -> None:
    text = CLUSTER.replace("annotations: {bayplan.io/run-time: 1h}", annotation, 1).rpartition("---\n")[0]
    (folder / "cluster.yaml").write_text(text)
    text = "paths: [cluster.yaml]\nuntil: 2h\nobjective: cost\nparameters: {percentageOfNodesToScore: [100]}\n"
    (folder / "sweep.yaml").write_text(text)
    plan = read_plan(folder / "sweep.yaml")
    run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    (row,) = rows(folder / "out")
    assert (row["cost"], row["utilisation"]) == want


def test_results_of_other_input_are_refused(plan: SweepPlan, folder: Path) -> None:
    first = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    (folder / "cluster.yaml").write_text(CLUSTER.replace('cpu: "4"', 'cpu: "3"'))
    with pytest.raises(InputError, match=r"whose trials ran before .*cluster.yaml changed"):
        run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    (folder / "cluster.yaml").write_text(CLUSTER)
    assert run_sweep(plan, folder / "out", lambda: LocalExecutor(plan)) == first


def test_an_error_names_at_most_five_changed_files(folder: Path) -> None:
    (folder / "nodes").mkdir()
    for number in range(8):
        (folder / "nodes" / f"{number}.yaml").write_text(CLUSTER.partition("---")[0].replace("a}", f"n{number}}}", 1))
    (folder / "sweep.yaml").write_text(SWEEP.replace("[cluster.yaml]", "[cluster.yaml, nodes]"))
    plan = read_plan(folder / "sweep.yaml")
    run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    for path in (folder / "nodes").iterdir():
        path.write_text(path.read_text() + "\n")
    with pytest.raises(InputError, match=r"/4\.yaml and 3 more files changed"):
        run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))


def test_a_sweep_continues_if_the_digests_of_its_input_are_empty(plan: SweepPlan, folder: Path) -> None:
    first = run_sweep(plan, folder / "out", lambda: LocalExecutor(plan))
    digests = (folder / "out" / "input.json").read_bytes()
    (folder / "out" / "input.json").write_bytes(b"")  # As a kill leaves it during a write in place.
    assert run_sweep(plan, folder / "out", lambda: LocalExecutor(plan)) == first
    assert (folder / "out" / "input.json").read_bytes() == digests


@pytest.mark.parametrize(
    ("amounts", "want"),
    [
        pytest.param("{memroy: 4Gi}", ("shapes.s", "memory: 4Gi"), id="an unknown resource"),
        pytest.param("{memory: 16}", ("shapes.s memory", "memory: 16Gi"), id="memory without a unit"),
        pytest.param("{cpu: -1}", ("shapes.s cpu", "{cpu: 4, memory: 16Gi}"), id="a negative amount"),
        pytest.param("{cpu: 4x}", ("shapes.s cpu", "{cpu: 4, memory: 16Gi}"), id="no quantity"),
    ],
)
def test_an_invalid_amount_of_a_shape_has_its_file_and_a_suggestion_in_yaml(
    folder: Path, amounts: str, want: tuple[str, str]
) -> None:
    (folder / "sweep.yaml").write_text(f"parameters: {{a: [1]}}\nshapes: {{s: {amounts}}}\n")
    with pytest.raises(InputError) as raised:
        read_plan(folder / "sweep.yaml")
    assert (raised.value.what, raised.value.hint) == want
    assert raised.value.where.endswith("sweep.yaml")
