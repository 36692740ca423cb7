"""Read the file that describes a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.sweeps.objectives import OBJECTIVES
from bayplan.sweeps.space import Space, read_space

SEARCHES = ("grid", "random", "optuna")
DEFAULT_TRIALS = 100
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
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise InputError("sweep", where=str(path), got=str(problem), wanted="YAML") from None
    where = str(path)
    if not isinstance(document, Mapping):
        raise InputError("sweep", where=where, got=type(document).__name__, wanted="an object")
    for name in document:
        if name not in _FIELDS:
            close = near_name(str(name), _FIELDS)
            raise InputError("sweep", where=where, got=repr(name), wanted=f"one of {', '.join(_FIELDS)}", hint=close)
    found = {**document, **{name: item for name, item in given.items() if item is not None}}
    return SweepPlan(
        paths=[_relative_to(path, each) for each in _texts(found, "paths", where)],
        space=read_space(found.get("parameters"), where),
        config=_config(path, found.get("config")),
        plugins=_texts(found, "plugins", where),
        shapes=_shapes(found.get("shapes", {}), where),
        objective=_one_of(found, "objective", tuple(OBJECTIVES), "waiting_time", where),
        search=_one_of(found, "search", SEARCHES, "grid", where),
        trials=_whole(found.get("trials", DEFAULT_TRIALS), "trials", where),
        seeds=[_whole(each, "seeds", where) for each in _list(found.get("seeds", [0]), "seeds", where)],
        until=str(found.get("until", "")),
        workload=_file(path, found, "workload"),
        autoscaler=_file(path, found, "autoscaler"),
        descheduler=_file(path, found, "descheduler"),
    )


def _relative_to(path: Path, name: str) -> str:
    return name if Path(name).is_absolute() else str(path.parent / name)


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
        config = yaml.safe_load(Path(_relative_to(path, config)).read_text(encoding="utf-8"))
    if not isinstance(config, Mapping):
        raise InputError("config", where=str(path), got=repr(config), wanted="a KubeSchedulerConfiguration or its path")
    return config


def _list(found: object, name: str, where: str) -> list[object]:
    if not isinstance(found, list) or not found:
        raise InputError(name, where=where, got=repr(found), wanted="a list with at least one element")
    return found


def _texts(document: Mapping[str, object], name: str, where: str) -> list[str]:
    return [str(each) for each in _list(document[name], name, where)] if document.get(name) else []


def _whole(number: object, name: str, where: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise InputError(name, where=where, got=repr(number), wanted="an integer of at least 0")
    return number


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
    return {str(name): {str(key): str(amount) for key, amount in each.items()} for name, each in found.items()}
