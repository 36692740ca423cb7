"""Simulate one trial of a sweep: a parameter set with a seed."""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from bayplan.analysis.export import export
from bayplan.analysis.run_facts import run_facts
from bayplan.answers.node_groups import ZONE
from bayplan.answers.node_shapes import HOSTNAME, place_labels, platform_labels
from bayplan.answers.workloads import template_of
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.app.simulation import RunFiles, SimulationOptions, prepare_simulation, read_run_files
from bayplan.base.errors import InputError
from bayplan.base.go_text.durations import read_duration
from bayplan.base.near_names import near_name
from bayplan.engine.records import RecordLevel
from bayplan.formats.inputs import Inputs, load_inputs
from bayplan.formats.trace import Trace
from bayplan.framework.configuration.extension_points import ExtensionPoint
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.configuration.plugin_arguments import argument_type_of
from bayplan.framework.registry import Registry
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.node import Node, NodeStatus
from bayplan.objects.node_prices import PRICE
from bayplan.objects.pod import Pod
from bayplan.objects.pod_defaults import DEFAULT_SCHEDULER_NAME
from bayplan.plugins.registry import in_tree_registry
from bayplan.sweeps.objectives import figures_of
from bayplan.sweeps.plan import PRICE_FIELD, SweepPlan
from bayplan.sweeps.space import ARGS, NODES, SAMPLING, SHAPE, WEIGHT, Value, unknown_parameter


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
        InputError: a file cannot be read, or no profile schedules any pod of the input.
    """
    workload, autoscaler, descheduler = (
        Path(name) if name else None for name in (plan.workload, plan.autoscaler, plan.descheduler)
    )
    files = read_run_files(workload=workload, autoscaler=autoscaler, descheduler=descheduler)
    inputs = load_inputs(plan.paths)
    _check_profiles(plan.config, inputs)
    return SharedInput(inputs, files)


def _check_profiles(config: Mapping[str, Any], inputs: Inputs) -> None:
    """Raise InputError if no profile of a valid configuration schedules any pod of the input."""
    profiles = config.get("profiles") or [{}]
    known = [str(each.get("schedulerName") or DEFAULT_SCHEDULER_NAME) for each in profiles]
    named = dict[str, None]()
    for name in _scheduler_names(inputs):
        if name in known:
            return
        named[name] = None
    if named:
        first = next(iter(named))
        wanted, hint = f"a profile for the pods of the scheduler {first}", near_name(first, known)
        hint = f"schedulerName: {first} instead of {hint}" if hint else f"schedulerName: {first}"
        raise InputError("config", got=f"profiles for {', '.join(known)}", wanted=wanted, hint=hint)


def _scheduler_names(inputs: Inputs) -> Iterator[str]:
    """Yield the names of the schedulers of pods and of pod templates."""
    for item in (each.typed for each in inputs.manifest.loaded):
        template = None if item is None else template_of(item)
        if isinstance(item, Pod):
            yield item.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
        elif template is not None:
            yield template.spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    if inputs.trace is not None:
        yield from (each.pod.spec.scheduler_name for each in inputs.trace.pods)


def run_trial(plan: SweepPlan, shared: SharedInput, trial: Trial, out: Path | None = None) -> Outcome:
    """Simulate a trial. An invalid configuration gives an outcome with an error, so that the search continues.

    Args:
        plan: the plan of the sweep.
        shared: the input of the sweep.
        trial: the trial to run.
        out: the result directory to write; None to write none.
    """
    start = time.perf_counter()
    until_ns = read_duration(plan.until) if plan.until else None
    try:
        setup = trial_setup(plan, trial.parameters)
        options = SimulationOptions(
            paths=(),
            seed=trial.seed,
            record_level=RecordLevel.SUMMARY,
            until_ns=until_ns,
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
    return Outcome(trial=trial, figures=figures_of(result, facts, until_ns), digest=facts.digest, seconds=seconds)


def trial_setup(plan: SweepPlan, parameters: Mapping[str, Value]) -> SchedulerSetup:
    """Return the scheduler setup for a parameter set.

    Raises:
        InputError: a parameter or its plugin is unknown, or the configuration is invalid.
    """
    try:
        setup = _read_setup(plan, trial_configuration(plan.config, parameters))
    except (AttributeError, KeyError, TypeError):
        # Perhaps the configuration is malformed, so that parameters can't be applied. Then its reader reports where.
        _read_setup(plan, trial_configuration(plan.config, {})).connections.close()
        raise
    check_plugins(setup.registry, parameters)
    weights = {name.removeprefix(WEIGHT): value for name, value in parameters.items() if name.startswith(WEIGHT)}
    return _without_scores(setup, {plugin for plugin, weight in weights.items() if not weight})


def check_plugins(registry: Registry, names: Iterable[str]) -> None:
    """Check the plugins in the names of parameters.

    Raises:
        InputError: there is no such plugin, it has no scores for its weight, or it has no arguments.
    """
    for name in names:
        prefix, _, rest = name.partition(".")
        kind = f"{prefix}."
        if kind not in (WEIGHT, ARGS):
            continue
        plugin, dot, field = (rest, "", "") if kind == WEIGHT else rest.partition(".")
        known = registry.plugins.get(plugin)
        if known is None:
            scorers = [
                name for name, each in registry.plugins.items() if ExtensionPoint.SCORE in each.extension_points()
            ]
            near = near_name(plugin, scorers if kind == WEIGHT else registry.plugins)
            hint = f"{kind}{near}{dot}{field}" if near else "plugins: [FILE.py:CLASS], if it is your own"
            raise InputError(f"parameter {name}", got=repr(plugin), wanted="the name of a plugin", hint=hint)
        if kind == WEIGHT and ExtensionPoint.SCORE not in known.extension_points():
            raise InputError(f"parameter {name}", got="a plugin without scores", wanted="a score plugin")
        if kind == ARGS and plugin in in_tree_registry().plugins and argument_type_of(plugin) is None:
            raise InputError(f"parameter {name}", got=f"{plugin}, which has none", wanted="a plugin with arguments")


def _read_setup(plan: SweepPlan, configuration: Mapping[str, object]) -> SchedulerSetup:
    text = msgspec.json.encode(configuration).decode()
    return read_setup(SchedulerOptions(text=text, where="configuration of the trial", plugins=plan.plugins))


def _without_scores(setup: SchedulerSetup, plugins: Collection[str]) -> SchedulerSetup:
    """Return a setup without the scores of some plugins.

    The configuration can't express this for custom plugins: those that it does not enable are enabled with weight 1.
    """
    if not plugins:
        return setup
    profiles = []
    for profile in setup.configuration.profiles:
        scorers = tuple(each for each in profile.plugins[ExtensionPoint.SCORE] if each.name not in plugins)
        points = MappingProxyType({**profile.plugins, ExtensionPoint.SCORE: scorers})
        profiles.append(replace(profile, plugins=points))
    return replace(setup, configuration=replace(setup.configuration, profiles=tuple(profiles)))


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
            raise unknown_parameter(name)
    return document


def _set_weight(profile: dict[str, Any], plugin: str, weight: Value, *, known: set[str]) -> None:
    """Set the weight of a score plugin, except 0 (see `_without_scores`).

    A plugin outside the default profile is enabled at all points, unless the profile names it at Score: an entry there
    takes precedence over one at all points.
    """
    if not weight:
        return
    plugins = profile["plugins"] = dict(profile.get("plugins") or {})
    score = plugins.get("score") or {}
    enabled, disabled = score.get("enabled") or [], score.get("disabled") or []
    is_named = any(each["name"] == plugin for each in enabled) or any(
        each["name"] in (plugin, "*") for each in disabled
    )
    if plugin not in known and not is_named:
        at_all_points = plugins["multiPoint"] = dict(plugins.get("multiPoint") or {})
        at_all_points["enabled"] = _with_weight(at_all_points.get("enabled") or [], plugin, weight)
        return
    if plugin in known:
        disabled = [*(each for each in disabled if each["name"] != plugin), {"name": plugin}]
    plugins["score"] = {**score, "enabled": _with_weight(enabled, plugin, weight), "disabled": disabled}


def _with_weight(enabled: Sequence[dict[str, Any]], plugin: str, weight: Value) -> list[dict[str, Any]]:
    """Return the enabled plugins with this one in its place, or at the end, with a weight."""
    found = [{**each, "weight": weight} if each["name"] == plugin else each for each in enabled]
    return found if any(each["name"] == plugin for each in enabled) else [*found, {"name": plugin, "weight": weight}]


def _set_argument(profile: dict[str, Any], path: str, value: Value) -> None:
    """Set a field of a plugin's arguments, for example ``NodeResourcesFit.scoringStrategy.type``."""
    plugin, *fields = path.split(".")
    entries: list[dict[str, Any]] = profile.get("pluginConfig") or []
    profile["pluginConfig"] = entries
    entry = next((each for each in entries if each.get("name") == plugin), None)
    if entry is None:
        entry = {"name": plugin}
        entries.append(entry)
    target: dict[str, Any] = entry.get("args") or {}
    entry["args"] = target
    for field in fields[:-1]:
        target = target.setdefault(field, {})
        if not isinstance(target, dict):
            raise InputError(f"parameter {ARGS}{path}", got=f"a field of {target!r}", wanted="a field of an object")
    target[fields[-1]] = value


def trial_inputs(plan: SweepPlan, inputs: Inputs, parameters: Mapping[str, Value]) -> Inputs:
    """Return the input with nodes of the trial's shape and number instead of its own nodes.

    The new nodes are spread over the zones of the nodes that they replace, and have the labels for the operating system
    and architecture that those have in common.

    Raises:
        InputError: the shape is unknown, a number of nodes is given without a shape, or it is not a number.
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
    present = [*inputs.manifest.nodes, *(inputs.trace.nodes if inputs.trace is not None else ())]
    count = parameters.get(NODES, len(present))
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InputError(f"parameter {NODES}", got=repr(count), wanted="an integer of at least 0")
    amounts = {key: amount for key, amount in plan.shapes[name].items() if key != PRICE_FIELD}
    price = plan.shapes[name].get(PRICE_FIELD)
    annotations = {PRICE: price} if price else {}
    status = NodeStatus(capacity={"pods": "110", **amounts}, allocatable={"pods": "110", **amounts})
    places = _places(present)
    nodes = []
    for number in range(count):
        hostname = f"{name}-{number:04}"
        labels = {HOSTNAME: hostname, **places[number % len(places)]}
        nodes.append(Node(metadata=ObjectMeta(name=hostname, labels=labels, annotations=annotations), status=status))
    return _with_nodes(inputs, nodes)


def _places(nodes: Sequence[Node]) -> list[dict[str, str]]:
    """Return the labels of a new node in each zone of these nodes; those of a node without a zone if they have none."""
    platform = platform_labels(nodes)
    zones = sorted({zone for node in nodes if (zone := node.metadata.labels.get(ZONE))})
    return [{**platform, **place_labels(zone, nodes)} for zone in zones] or [platform]


def _with_nodes(inputs: Inputs, nodes: list[Node]) -> Inputs:
    others = [each for each in inputs.manifest.loaded if not isinstance(each.typed, Node)]
    trace = inputs.trace if inputs.trace is not None else Trace(format="sweep")
    return replace(inputs, manifest=replace(inputs.manifest, loaded=others), trace=replace(trace, nodes=nodes))
