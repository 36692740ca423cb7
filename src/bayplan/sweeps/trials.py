"""Simulate one trial of a sweep: a parameter set with a seed."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bayplan.analysis.export import export
from bayplan.analysis.run_facts import run_facts
from bayplan.app.scheduler_setup import SchedulerSetup, read_setup
from bayplan.app.simulation import RunFiles, SimulationOptions, prepare_simulation, read_run_files
from bayplan.base.errors import InputError
from bayplan.base.go_text.durations import read_duration
from bayplan.engine.records import RecordLevel
from bayplan.formats.inputs import Inputs, load_inputs
from bayplan.formats.trace import Trace
from bayplan.framework.configuration.loading import default_configuration
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.node import Node, NodeStatus
from bayplan.objects.node_prices import PRICE
from bayplan.sweeps.objectives import figures_of
from bayplan.sweeps.plan import SweepPlan
from bayplan.sweeps.space import Value

WEIGHT, ARGS = "weight.", "args."
SAMPLING = "percentageOfNodesToScore"
SHAPE, NODES = "shape", "nodes"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial to run: its number, the number of its candidate, the candidate's parameters, and the seed."""

    number: int
    candidate: int
    parameters: dict[str, Value]
    seed: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a trial.

    Attributes:
        trial: the trial.
        figures: see `bayplan.sweeps.objectives.FIGURES`; empty if it could not run.
        digest: the digest of all decisions.
        seconds: how long the trial took in real time.
        error: why the trial could not run, or "".
    """

    trial: Trial
    figures: dict[str, float] = {}
    digest: str = ""
    seconds: float = 0.0
    error: str = ""


class SharedInput(msgspec.Struct, frozen=True):
    """The input that all trials of a sweep share. It is read once and passed to the workers.

    Attributes:
        inputs: the manifests and traces.
        files: the workload, autoscaler and descheduler.
    """

    inputs: Inputs
    files: RunFiles


def read_shared_input(plan: SweepPlan) -> SharedInput:
    """Read the input of a sweep.

    Raises:
        InputError: a file cannot be read.
    """
    workload, autoscaler, descheduler = (
        Path(name) if name else None for name in (plan.workload, plan.autoscaler, plan.descheduler)
    )
    files = read_run_files(workload=workload, autoscaler=autoscaler, descheduler=descheduler)
    return SharedInput(load_inputs(plan.paths), files)


def run_trial(plan: SweepPlan, shared: SharedInput, trial: Trial, out: Path | None = None) -> Outcome:
    """Simulate a trial. An invalid configuration gives an outcome with an error, so that the search continues.

    Args:
        plan: the plan of the sweep.
        shared: the input of the sweep.
        trial: the trial to run.
        out: the result directory to write; None to write none.
    """
    start = time.perf_counter()
    try:
        setup = trial_setup(plan, trial.parameters)
        options = SimulationOptions(
            paths=(),
            seed=trial.seed,
            record_level=RecordLevel.SUMMARY,
            until_ns=read_duration(plan.until) if plan.until else None,
        )
        inputs = trial_inputs(plan, shared.inputs, trial.parameters)
        result = prepare_simulation(options, inputs=inputs, setup=setup, files=shared.files).run()
    except InputError as problem:
        return Outcome(trial=trial, error=str(problem), seconds=time.perf_counter() - start)
    facts = run_facts(result)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        export(result, out, facts=facts)
    seconds = time.perf_counter() - start
    return Outcome(trial=trial, figures=figures_of(result, facts), digest=facts.digest, seconds=seconds)


def trial_setup(plan: SweepPlan, parameters: Mapping[str, Value]) -> SchedulerSetup:
    """Return the scheduler setup for a parameter set.

    Raises:
        InputError: a parameter is unknown, or the configuration is invalid.
    """
    text = msgspec.json.encode(trial_configuration(plan.config, parameters)).decode()
    return read_setup(text=text, where="configuration of the trial", plugins=plan.plugins)


def trial_configuration(base: Mapping[str, object], parameters: Mapping[str, Value]) -> dict[str, Any]:
    """Return a configuration in which the parameters of a trial are applied to all profiles.

    Args:
        base: the configuration of the plan.
        parameters: the parameters of the trial.

    Raises:
        InputError: a parameter is unknown.
    """
    document: dict[str, Any] = copy.deepcopy(dict(base))
    document.setdefault("apiVersion", "kubescheduler.config.k8s.io/v1")
    document.setdefault("kind", "KubeSchedulerConfiguration")
    profiles: list[dict[str, Any]] = document.setdefault("profiles", None) or [{}]
    document["profiles"] = profiles
    scorers = {entry.name for entry in default_configuration().profiles[0].plugins["score"]}
    for name, value in parameters.items():
        if name == SAMPLING:
            document[SAMPLING] = value
        elif name.startswith(WEIGHT):
            for profile in profiles:
                _set_weight(profile, name.removeprefix(WEIGHT), value, known=scorers)
        elif name.startswith(ARGS):
            for profile in profiles:
                _set_argument(profile, name.removeprefix(ARGS), value)
        elif name not in (SHAPE, NODES):
            wanted = f"{WEIGHT}PLUGIN, {ARGS}PLUGIN.FIELD, {SAMPLING}, {SHAPE} or {NODES}"
            raise InputError("parameter", got=repr(name), wanted=wanted)
    return document


def _set_weight(profile: dict[str, Any], plugin: str, weight: Value, *, known: set[str]) -> None:
    """Set the weight of a score plugin; 0 disables its scores. A plugin outside the default profile is enabled at all points."""
    plugins = profile.setdefault("plugins", {})
    if plugin not in known and weight:
        enabled = plugins.setdefault("multiPoint", {}).setdefault("enabled", [])
        enabled[:] = [each for each in enabled if each["name"] != plugin] + [{"name": plugin, "weight": weight}]
        return
    score = plugins.setdefault("score", {})
    enabled = [each for each in score.get("enabled", []) if each["name"] != plugin]
    disabled = [each for each in score.get("disabled", []) if each["name"] != plugin]
    score["disabled"] = [*disabled, {"name": plugin}] if plugin in known else disabled
    score["enabled"] = [*enabled, {"name": plugin, "weight": weight}] if weight else enabled


def _set_argument(profile: dict[str, Any], path: str, value: Value) -> None:
    """Set a field of a plugin's arguments, for example ``NodeResourcesFit.scoringStrategy.type``."""
    plugin, *fields = path.split(".")
    if not fields:
        raise InputError("parameter", got=repr(ARGS + path), wanted=f"{ARGS}PLUGIN.FIELD")
    entries: list[dict[str, Any]] = profile.setdefault("pluginConfig", [])
    entry = next((each for each in entries if each.get("name") == plugin), None)
    if entry is None:
        entry = {"name": plugin, "args": {}}
        entries.append(entry)
    target: dict[str, Any] = entry.setdefault("args", {})
    for field in fields[:-1]:
        target = target.setdefault(field, {})
    target[fields[-1]] = value


def trial_inputs(plan: SweepPlan, inputs: Inputs, parameters: Mapping[str, Value]) -> Inputs:
    """Return the input with nodes of the trial's shape and number instead of its own nodes.

    Raises:
        InputError: the shape is unknown, or a number of nodes is given without a shape.
    """
    if SHAPE not in parameters and NODES not in parameters:
        return inputs
    names = list(plan.shapes)
    name = str(parameters.get(SHAPE, names[0] if len(names) == 1 else ""))
    if name not in plan.shapes:
        raise InputError(
            "shape",
            got=repr(name),
            wanted=f"one of {', '.join(names)}" if names else "the field shapes in the sweep file",
        )
    present = len(inputs.manifest.nodes) + (len(inputs.trace.nodes) if inputs.trace is not None else 0)
    count = int(parameters.get(NODES, present))
    amounts = {key: amount for key, amount in plan.shapes[name].items() if key != "price"}
    price = plan.shapes[name].get("price")
    annotations = {PRICE: price} if price else {}
    status = NodeStatus(capacity={"pods": "110", **amounts}, allocatable={"pods": "110", **amounts})
    nodes = [
        Node(metadata=ObjectMeta(name=f"{name}-{number:04}", annotations=annotations), status=status)
        for number in range(count)
    ]
    return _with_nodes(inputs, nodes)


def _with_nodes(inputs: Inputs, nodes: list[Node]) -> Inputs:
    others = [each for each in inputs.manifest.loaded if not isinstance(each.typed, Node)]
    trace = inputs.trace if inputs.trace is not None else Trace(format="sweep")
    return replace(inputs, manifest=replace(inputs.manifest, loaded=others), trace=replace(trace, nodes=nodes))
