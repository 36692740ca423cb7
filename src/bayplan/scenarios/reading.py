"""Read scenario files: from YAML or JSON to structs. Every error is reported with its file and line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from bayplan.autoscaling.configuration import AutoscalerConfiguration, autoscaler_of, read_autoscaler
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.descheduling import DEFAULT_INTERVAL_NS
from bayplan.descheduling.policy import Policy, policy_of, read_policy
from bayplan.formats.documents import Document
from bayplan.formats.inputs import Inputs, load_documents, load_inputs
from bayplan.formats.manifest import Manifest
from bayplan.formats.manifests import GeneratedNames
from bayplan.formats.typed_documents import duration_at, placed, read_typed
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.scenarios.scenario import ACTIONS, API_VERSION, KIND, SETTLED, Check, Scenario, Step, actions_of
from bayplan.sim.simulator import Simulator
from bayplan.workloads.shape import read_shape, shape_of, shaped_inputs


class StepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A validated and loaded step.

    Attributes:
        step: the step in the file.
        number: the 1-based number of the step.
        where: the file and line of the step.
        at_ns: the time since the start at which it begins; None if not given.
        after_ns: the time to wait after the previous step; None if not given.
        timeout_ns: the timeout of conditions, waits and drains.
        wait_ns: the duration of `wait`; None for "until nothing changes", or without `wait`.
        objects: the objects of `create` or `apply`.
        act: executes a step of another format for which `Step` has no action.
        check_places: the file and line of each check in `assert`.
    """

    step: Step
    number: int
    where: str
    at_ns: int | None = None
    after_ns: int | None = None
    timeout_ns: int = 0
    wait_ns: int | None = None
    objects: Sequence[KubernetesObject] = ()
    check_places: Sequence[str] = ()
    act: Callable[[Simulator], None] | None = None


class ScenarioPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A validated scenario with everything that it refers to.

    Attributes:
        name: the name shown in results.
        file: the path of the file.
        scenario: the scenario in the file.
        inputs: the cluster at the start.
        steps: the steps, in order.
        folder: the folder that paths are relative to.
        autoscaler: the configuration of the autoscaler; None without an autoscaler.
        descheduler: the policy of the descheduler; None without a descheduler.
        descheduling_interval_ns: the interval between runs of the descheduler.
    """

    name: str
    file: str
    scenario: Scenario
    inputs: Inputs
    steps: Sequence[StepPlan]
    folder: Path
    autoscaler: AutoscalerConfiguration | None = None
    descheduler: Policy | None = None
    descheduling_interval_ns: int = DEFAULT_INTERVAL_NS


def read_scenario(document: Document, folder: Path) -> ScenarioPlan:
    """Validate a scenario in Bayplan's own format, and load what it refers to.

    Args:
        document: the document of the scenario.
        folder: the folder that its paths are relative to.

    Raises:
        InputError: the scenario is invalid; the message has file and line.
    """
    scenario = read_typed(document, Scenario, kind=KIND, api_version=API_VERSION)
    inputs, steps = _load_parts(document, scenario, folder)
    _check_times(document, steps)
    return ScenarioPlan(
        name=scenario.name or Path(document.source.file).name,
        file=document.source.file,
        scenario=scenario,
        inputs=inputs,
        steps=steps,
        folder=folder,
        autoscaler=_read_autoscaler(document, scenario, folder),
        descheduler=_read_descheduler(document, scenario, folder),
        descheduling_interval_ns=_interval(document, scenario),
    )


def _interval(document: Document, scenario: Scenario) -> int:
    found = _duration(document, scenario.descheduling_interval, "$.deschedulingInterval")
    if not found:
        raise _refusal(document, "$.deschedulingInterval", "a duration above 0", repr(scenario.descheduling_interval))
    return found


def _read_descheduler(document: Document, scenario: Scenario, folder: Path) -> Policy | None:
    given = scenario.descheduler
    if given is None:
        return None
    return read_policy(folder / given) if isinstance(given, str) else policy_of(document.part("$.descheduler", given))


def _read_autoscaler(document: Document, scenario: Scenario, folder: Path) -> AutoscalerConfiguration | None:
    given = scenario.autoscaler
    if given is None:
        return None
    return (
        read_autoscaler(folder / given)
        if isinstance(given, str)
        else autoscaler_of(document.part("$.autoscaler", given))
    )


# --- steps ------------------------------------------------------------------------------------------------------------


def _plan_step(document: Document, step: Step, index: int, folder: Path, names: GeneratedNames) -> StepPlan:
    path = f"$.steps[{index}]"
    actions = actions_of(step)
    if len(actions) > 1:
        raise _refusal(document, path, f"one of {', '.join(ACTIONS)}", " and ".join(actions))
    if not actions and step.at is None and step.after is None and not step.when:
        raise _refusal(document, path, f"one of {', '.join(ACTIONS)}, or when", "a step that does nothing")
    if step.at is not None and step.after is not None:
        raise _refusal(document, path, "at or after", "both")
    for name in ("when", "assert"):
        for number, check in enumerate(step.when if name == "when" else step.assert_):
            _check_check(document, check, f"{path}.{name}[{number}]")
    for name, failure in (("fail", step.fail), ("restore", step.restore)):
        if failure is not None and sum(each is not None for each in (failure.nodes, failure.zone, failure.rack)) != 1:
            raise _refusal(document, f"{path}.{name}", "nodes, zone or rack", "none or several of them")
    return StepPlan(
        step=step,
        number=index + 1,
        where=document.where(path),
        at_ns=_duration(document, step.at, f"{path}.at"),
        after_ns=_duration(document, step.after, f"{path}.after"),
        timeout_ns=_duration(document, step.timeout, f"{path}.timeout") or 0,
        wait_ns=None if step.wait == SETTLED else _wait(document, step.wait, f"{path}.wait"),
        objects=list(_objects(document, step, path, folder, names).objects()),
        check_places=[document.where(f"{path}.assert[{number}]") for number in range(len(step.assert_))],
    )


def _check_check(document: Document, check: Check, path: str) -> None:
    given = [field for field in check.__struct_fields__ if getattr(check, field) is not None]
    names = [field.encode_name for field in msgspec.structs.fields(Check)]
    if len(given) != 1:
        raise _refusal(document, path, f"one of {', '.join(names)}", " and ".join(given) or "none")
    if check.waiting_time is not None:
        _duration(document, check.waiting_time.at_most, f"{path}.waitingTime.atMost")
    if check.utilisation is not None and check.utilisation.at_least is None and check.utilisation.at_most is None:
        raise _refusal(document, f"{path}.utilisation", "atLeast or atMost", "neither")
    numbered = check.evictions or check.nodes
    if numbered is not None and numbered.count is None and numbered.at_least is None and numbered.at_most is None:
        name = "evictions" if check.evictions is not None else "nodes"
        raise _refusal(document, f"{path}.{name}", "count, atLeast or atMost", "none of them")


def _check_times(document: Document, steps: Sequence[StepPlan]) -> None:
    """Raise an error if a step's time is before that of an earlier step."""
    latest, text = 0, ""
    for index, plan in enumerate(steps):
        if plan.at_ns is None:
            continue
        if plan.at_ns < latest:
            raise _refusal(
                document,
                f"$.steps[{index}].at",
                f"a time at or after '{text}', the time of an earlier step",
                f"'{plan.step.at}'",
            )
        latest, text = plan.at_ns, plan.step.at or ""


def _duration(document: Document, text: str | None, path: str) -> int | None:
    return None if text is None else duration_at(document, text, path, kind=KIND)


def _wait(document: Document, text: str | None, path: str) -> int | None:
    if text is not None and near_name(text, [SETTLED]):
        where = document.where(path)
        raise InputError(
            f"Scenario {path}", where=where, wanted=f"a duration or '{SETTLED}'", got=repr(text), hint=repr(SETTLED)
        )
    return _duration(document, text, path)


def _refusal(document: Document, path: str, wanted: str, got: str) -> InputError:
    return InputError(f"Scenario {path}", where=document.where(path), wanted=wanted, got=got)


# --- objects ----------------------------------------------------------------------------------------------------------


def _load_parts(document: Document, scenario: Scenario, folder: Path) -> tuple[Inputs, list[StepPlan]]:
    """Return the cluster at the start and the steps, whose objects all have different names if names are generated."""
    names: GeneratedNames | None = GeneratedNames()
    while names is not None:
        inputs = _load_cluster(document, scenario, folder, names)
        steps = [_plan_step(document, step, number, folder, names) for number, step in enumerate(scenario.steps)]
        inputs = _shaped(document, scenario, folder, inputs, steps)
        pods = inputs.trace.pods if inputs.trace is not None else ()
        # Load everything again in the rare case that a part names an object like a generated name of an earlier part.
        names = names.for_next_load(each.pod for each in pods)
    return inputs, steps


def _objects(document: Document, step: Step, path: str, folder: Path, names: GeneratedNames) -> Manifest:
    for name, items in (("create", step.create), ("apply", step.apply)):
        if items:
            return _load(document, items, f"{path}.{name}", folder, names).manifest
    return Manifest()


def _shaped(document: Document, scenario: Scenario, folder: Path, inputs: Inputs, steps: Sequence[StepPlan]) -> Inputs:
    """Return the cluster at the start, with its trace changed by the scenario's workload."""
    given = scenario.workload
    if given is None:
        return inputs
    shape = read_shape(folder / given) if isinstance(given, str) else shape_of(document.part("$.workload", given))
    try:
        of_steps = [item.key for step in steps for item in step.objects if isinstance(item, Pod)]
        return shaped_inputs(inputs, shape, scenario.seed, what="Scenario $.workload", taken=of_steps)
    except InputError as problem:
        raise placed(problem, document) from None


def _load_cluster(document: Document, scenario: Scenario, folder: Path, names: GeneratedNames) -> Inputs:
    if not scenario.cluster:
        return Inputs(manifest=Manifest(), trace=None)
    return _load(document, scenario.cluster, "$.cluster", folder, names)


def _load(
    document: Document,
    items: Sequence[str | Mapping[str, object]],
    path: str,
    folder: Path,
    generated: GeneratedNames,
) -> Inputs:
    """Load a list of objects and paths. A trace is only allowed in `cluster`."""
    manifest, inputs = Manifest(), None
    paths = [str(folder / item) for item in items if isinstance(item, str)]
    if paths:
        try:
            inputs = load_inputs(paths, names=generated)
        except InputError as problem:
            if problem.where:
                raise
            place = next(index for index, item in enumerate(items) if isinstance(item, str))
            raise InputError(
                problem.what,
                where=document.where(f"{path}[{place}]"),
                wanted=problem.wanted,
                got=problem.got,
                hint=problem.hint,
            ) from None
        manifest = inputs.manifest
        if inputs.trace is not None and path != "$.cluster":
            raise _refusal(document, path, "manifests (a trace belongs in `cluster`)", "a trace")
    inline = [document.part(f"{path}[{index}]", item) for index, item in enumerate(items) if not isinstance(item, str)]
    if inline:
        names = [node.metadata.name for node in manifest.nodes]
        more = load_documents(inline, known_nodes=names, names=generated)
        manifest.loaded += more.loaded
        manifest.unused += more.unused
        manifest.warnings += more.warnings
    return Inputs(manifest=manifest, trace=inputs.trace if inputs is not None else None)
