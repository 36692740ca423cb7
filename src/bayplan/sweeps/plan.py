"""Read the file that describes a sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from bayplan.answers.node_amounts import check_node_amount
from bayplan.base.errors import InputError
from bayplan.base.go_text.durations import read_duration
from bayplan.base.near_names import near_name
from bayplan.sweeps.objectives import OBJECTIVES
from bayplan.sweeps.space import NODES, SHAPE, Choice, Space, check_space, read_space

SEARCHES = ("grid", "random", "optuna")
DEFAULT_TRIALS = 100
PRICE_FIELD = "price"
"""Field of a shape that is not a resource: the price of a node per hour."""
_FIELDS = (
    "paths",
    "workload",
    "autoscaler",
    "descheduler",
    "config",
    "plugins",
    "parameters",
    "shapes",
    "objective",
    "search",
    "trials",
    "seeds",
    "until",
)


@dataclass(frozen=True)
class SweepPlan:
    """A sweep.

    Attributes:
        paths: the manifests and traces.
        workload, autoscaler, descheduler: the files, as for ``simulate``; "" for none.
        config: the scheduler configuration to which each trial applies its parameters, as plain data.
        plugins: the plugins, as for ``--plugin``.
        space: the parameters and their possible values.
        shapes: the node shapes by name, for the parameter ``shape``.
        objective: the objective, a name of `OBJECTIVES`.
        search: the search, one of `SEARCHES`.
        trials: the number of parameter sets to try; a grid ignores it.
        seeds: the seeds; each parameter set runs once with each seed.
        until: the virtual time to simulate; "" for no limit.
    """

    paths: Sequence[str]
    space: Space
    config: Mapping[str, object] = field(default_factory=dict)
    plugins: Sequence[str] = ()
    shapes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    objective: str = "waiting_time"
    search: str = "grid"
    trials: int = DEFAULT_TRIALS
    seeds: Sequence[int] = (0,)
    until: str = ""
    workload: str = ""
    autoscaler: str = ""
    descheduler: str = ""


def read_plan(path: Path, **given: object) -> SweepPlan:
    """Read a sweep file. Relative paths in it start at its folder.

    Args:
        path: the file.
        given: fields to use instead of the file's; None keeps the field of the file.

    Raises:
        InputError: the file is invalid YAML, or a field is invalid.
    """
    where = str(path)
    document = _read_yaml(path, "sweep")
    if not isinstance(document, Mapping):
        got = "an empty file" if document is None else repr(document)
        raise InputError("sweep", where=where, got=got, wanted="an object with the fields paths and parameters")
    for name in document:
        if name not in _FIELDS:
            close = near_name(str(name), _FIELDS)
            raise InputError("sweep", where=where, got=repr(name), wanted=f"one of {', '.join(_FIELDS)}", hint=close)
    found = {**document, **{name: item for name, item in given.items() if item is not None}}
    plan = SweepPlan(
        paths=[_relative_to(path, each) for each in _texts(found, "paths", where)],
        space=read_space(found.get("parameters"), where),
        config=_config(path, found.get("config")),
        plugins=[_plugin_relative_to(path, each) for each in _texts(found, "plugins", where)],
        shapes=_shapes(found.get("shapes", {}), where),
        objective=_one_of(found, "objective", tuple(OBJECTIVES), "waiting_time", where),
        search=_one_of(found, "search", SEARCHES, "grid", where),
        trials=_whole(found.get("trials", DEFAULT_TRIALS), "trials", where, lowest=1),
        seeds=_seeds(found, where),
        until=_until(found, where),
        workload=_file(path, found, "workload"),
        autoscaler=_file(path, found, "autoscaler"),
        descheduler=_file(path, found, "descheduler"),
    )
    check_space(plan.space, where)
    _check_shape_names(plan, where)
    return plan


def _check_shape_names(plan: SweepPlan, where: str) -> None:
    """Check that the parameters for nodes name shapes of the sweep file.

    Raises:
        InputError: there is no such shape, or it is not clear which shape the nodes have.
    """
    given = [name for name in (SHAPE, NODES) if name in plan.space]
    if given and not plan.shapes:
        wanted, hint = "the resources of nodes by name", "shapes: {small: {cpu: 4, memory: 16Gi}}"
        raise InputError(f"shapes, for the parameter {given[0]}", where=where, got="none", wanted=wanted, hint=hint)
    if plan.shapes and not given:
        hint = f"the parameter {SHAPE}: [{', '.join(plan.shapes)}]"
        raise InputError("shapes: no parameter uses them", where=where, hint=hint)
    if given == [NODES] and len(plan.shapes) > 1:
        names = ", ".join(plan.shapes)
        raise InputError(f"parameter {SHAPE}", where=where, got="none", wanted=f"one of the shapes {names}")
    domain = plan.space.get(SHAPE)
    for name in domain.values if isinstance(domain, Choice) else ():
        if name not in plan.shapes:
            near = near_name(str(name), plan.shapes)
            wanted = f"one of {', '.join(plan.shapes)}"
            raise InputError(f"parameter {SHAPE}", where=where, got=repr(name), wanted=wanted, hint=near)


def _relative_to(path: Path, name: str) -> str:
    return name if Path(name).is_absolute() else str(path.parent / name)


def _plugin_relative_to(path: Path, option: str) -> str:
    """Return a value of ``--plugin`` whose file is relative to the sweep file; an installed plugin has no file."""
    return _relative_to(path, option) if ":" in option else option


def _read_yaml(path: Path, name: str) -> object:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise InputError(name, where=str(path), got=str(problem), wanted="YAML") from None


def _file(path: Path, document: Mapping[str, object], name: str) -> str:
    given = document.get(name)
    if given is None:
        return ""
    if not isinstance(given, str):
        raise InputError(name, where=str(path), got=repr(given), wanted="the path of a file")
    return _relative_to(path, given)


def _config(path: Path, config: object) -> Mapping[str, object]:
    if config is None:
        return {}
    if isinstance(config, str):
        config = _read_yaml(Path(_relative_to(path, config)), "config")
    if not isinstance(config, Mapping):
        raise InputError("config", where=str(path), got=repr(config), wanted="a KubeSchedulerConfiguration or its path")
    return config


def _list(found: object, name: str, where: str) -> list[object]:
    if not isinstance(found, list) or not found:
        raise InputError(name, where=where, got=repr(found), wanted="a list with at least one element")
    return found


def _texts(document: Mapping[str, object], name: str, where: str) -> list[str]:
    return [str(each) for each in _list(document[name], name, where)] if document.get(name) else []


def _whole(number: object, name: str, where: str, *, lowest: int = 0) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < lowest:
        raise InputError(name, where=where, got=repr(number), wanted=f"an integer of at least {lowest}")
    return number


def _seeds(document: Mapping[str, object], where: str) -> list[int]:
    seeds = [_whole(each, "seeds", where) for each in _list(document.get("seeds", [0]), "seeds", where)]
    twice = next((each for each in seeds if seeds.count(each) > 1), None)
    if twice is not None:
        raise InputError("seeds", where=where, got=f"{twice} more than once", wanted="different seeds")
    return seeds


def _until(document: Mapping[str, object], where: str) -> str:
    found = document.get("until")
    if found is None or found == "":
        return ""
    text, hint = str(found), "90s or 1h30m"
    try:
        is_positive = read_duration(text) > 0
    except InputError:
        raise InputError("until", where=where, got=repr(text), wanted="a duration with units", hint=hint) from None
    if not is_positive:
        raise InputError("until", where=where, got=repr(text), wanted="a positive duration", hint=hint)
    return text


def _one_of(document: Mapping[str, object], name: str, names: Sequence[str], default: str, where: str) -> str:
    text = str(document.get(name, default))
    if text not in names:
        raise InputError(
            name, where=where, got=repr(text), wanted=f"one of {', '.join(names)}", hint=near_name(text, names)
        )
    return text


def _shapes(found: object, where: str) -> Mapping[str, Mapping[str, str]]:
    if not isinstance(found, Mapping) or not all(isinstance(each, Mapping) for each in found.values()):
        raise InputError("shapes", where=where, got=repr(found), wanted="amounts by resource for each name")
    shapes = {str(name): {str(key): str(amount) for key, amount in each.items()} for name, each in found.items()}
    for name, amounts in shapes.items():
        for key, text in amounts.items():
            if key == PRICE_FIELD:
                _check_price(f"shapes.{name}.{key}", text, where)
            else:
                example = "{cpu: 4, memory: 16Gi}"
                check_node_amount(key, text, what=f"shapes.{name}", example=example, where=where, separator=": ")
    return shapes


def _check_price(name: str, text: str, where: str) -> None:
    """Raise InputError unless a price is a number of at least 0."""
    try:
        price = float(text)
    except ValueError:
        price = -1
    if not 0 <= price < math.inf:
        raise InputError(name, where=where, got=repr(text), wanted="a number of at least 0")
