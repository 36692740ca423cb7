"""Load custom plugins: classes in files that a user names, and entry points of installed packages."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from bayplan.analysis.units import format_choice
from bayplan.base.errors import BayplanError, PluginError, PluginFailure
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.near_names import near_name
from bayplan.framework.plugin import Plugin
from bayplan.framework.registry import Registry

ENTRY_POINT_GROUP = "bayplan.plugins"
MAX_WEIGHT = (1 << 31) - 1
"""The maximum weight of a plugin: weights are int32 in a configuration file."""


_FROM_WRONG_TYPES = (AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that values of wrong types can cause in the scheduler; others, such as OSError, have other causes."""


class CustomPlugin(msgspec.Struct, frozen=True):
    """A plugin to enable.

    Attributes:
        plugin: the class of the plugin.
        weight: the weight of its scores.
        file: the file of the plugin; "" for an installed package.
    """

    plugin: type[Plugin[Any]]
    weight: int
    file: str


def load_custom_plugins(options: Sequence[str], registry: Registry) -> tuple[Registry, list[CustomPlugin]]:
    """Return a registry with custom plugins, and the custom plugins that the options enable.

    Plugins of installed packages (entry points of the group ``bayplan.plugins``) and of `bayplan.contrib` are registered under
    their names, like in-tree plugins: a configuration can enable them, or an option with their name. A custom plugin with the
    name of one in `bayplan.contrib` replaces it.

    Args:
        options: the values of ``--plugin``: ``FILE.py:CLASS``, or the name of an installed plugin; each may end in ``=WEIGHT``.
        registry: the known plugins, which may already include installed ones.

    Raises:
        PluginError: a file or class does not exist or is invalid, a name is taken, or a weight is not a number.
    """
    known = registry.plugins.values()
    installed = [plugin for plugin in _installed_plugins() if plugin not in known]
    registry = _with_contrib(registry.with_plugins(*installed), options)
    modules: dict[Path, ModuleType] = {}
    enabled: list[CustomPlugin] = []
    for option in options:
        target, weight = _split_weight(option)
        file, colon, class_name = target.rpartition(":")
        if not colon:
            enabled.append(CustomPlugin(_known_plugin(target, registry), weight, ""))
            continue
        path = Path(file)
        if path not in modules:
            modules[path] = _load_module(path, option)
        plugin = _plugin_class(modules[path], path, class_name)
        if all(other.plugin is not plugin for other in enabled):
            registry = registry.with_plugins(plugin)
        enabled.append(CustomPlugin(plugin, weight, file))
    names = [custom.plugin.name for custom in enabled]
    for name in names:
        if (count := names.count(name)) > 1:
            raise PluginError(
                f"--plugin {name} is given more than once", wanted="one option per plugin", got=f"{count}"
            )
    return registry, enabled


def _with_contrib(registry: Registry, options: Sequence[str]) -> Registry:
    """Return a registry with the bundled plugins, except those whose names are in use or reserved for other plugins."""
    from bayplan.contrib import CONTRIB  # Imported here, because most runs use only in-tree plugins.

    classes = {_split_weight(option)[0].rpartition(":")[2] for option in options if ":" in option}
    return registry.with_plugins(
        *(plugin for plugin in CONTRIB if plugin.name not in registry and plugin.name not in classes)
    )


def _split_weight(option: str) -> tuple[str, int]:
    target, equals, text = option.rpartition("=")
    if not equals:
        return option, 1
    if not (text.isascii() and text.isdigit() and 1 <= whole_number(text) <= MAX_WEIGHT):
        raise PluginError(
            f"--plugin {option}",
            got=f"weight {text!r}",
            wanted=f"a whole number from 1 to {MAX_WEIGHT}",
            hint=f"'{target}=2'",
        )
    return target, int(text)


def _known_plugin(name: str, registry: Registry) -> type[Plugin[Any]]:
    if name in registry:
        return registry.plugins[name]
    hint = f"'{name}:ClassName'" if name.endswith(".py") else ""
    close = near_name(name, registry)
    raise PluginError(
        f"--plugin {name}",
        wanted="FILE.py:CLASS, or the name of an installed plugin",
        got="an unknown name",
        hint=hint or (f"'{close}'" if close else ""),
    )


def _load_module(path: Path, option: str) -> ModuleType:
    if not path.is_file():
        close = near_name(path.name, sorted(each.name for each in path.parent.glob("*.py")))
        hint = f"'{path.parent / close}'" if close else ""
        raise PluginError(f"--plugin {option}", wanted="an existing Python file", got=repr(str(path)), hint=hint)
    place = blake2b(str(path.resolve()).encode(), digest_size=4).hexdigest()
    name = f"bayplan_plugin_{path.stem}_{place}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        got, hint = repr(path.name), "a name that ends in .py"
        raise PluginError(f"--plugin {option}", where=str(path), wanted="a Python file", got=got, hint=hint)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickling look up the module of a class by name.
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        # Compile the source, and ignore cached bytecode: a server may reload a file immediately after it was changed.
        linecache.checkcache(str(path))
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as problem:
        # SystemExit, too: a plugin file that calls sys.exit must not end a server that reloads it.
        if before is None:
            sys.modules.pop(name, None)
        else:
            # The classes that were loaded before stay in use.
            sys.modules[name] = before
        raise failure_in_plugin(problem, (str(path),), "the file can't be imported") from problem
    return module


def _plugin_class(module: ModuleType, path: Path, name: str) -> type[Plugin[Any]]:
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, Plugin):
        if not isinstance(own_name := vars(found).get("name", ""), str):
            raise PluginError(name, where=str(path), wanted="a text as its `name`", got=repr(own_name))
        return found
    own = [
        each.__name__
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Plugin) and each.__module__ == module.__name__
    ]
    kind = "class" if isinstance(found, type) else type(found).__name__
    got = "no class of this name" if found is None else f"{kind} {name}, which does not inherit from one"
    close = near_name(name, own) or (own[0] if len(own) == 1 else "")
    hint = f"'{path}:{close}'" if close else "" if own else "class MyPlugin(bayplan.PerNodePlugin): ..."
    raise PluginError(
        name, where=str(path), wanted="a class that inherits from one of Bayplan's plugin classes", got=got, hint=hint
    )


def _installed_plugins() -> list[type[Plugin[Any]]]:
    from importlib.metadata import (
        entry_points,
    )  # Imported here, because importing it is slow, and most runs have no plugins.

    found: list[type[Plugin[Any]]] = []
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)):
        where = f"entry point {point.name} = {point.value}"
        try:
            plugin = point.load()
        except Exception as problem:
            got = f"{type(problem).__name__}: {problem}"
            raise PluginError(f"{where}: the plugin can't be imported: {got}") from problem
        if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
            raise PluginError(
                where, got=repr(plugin), wanted="a class that inherits from one of Bayplan's plugin classes"
            )
        found.append(plugin)
    return found


def failure_in_plugin(problem: BaseException, files: Sequence[str], what: str = "") -> PluginError:
    """Convert an exception from a plugin's file into an error with the line in that file.

    Args:
        problem: the exception. Its last note, which the scheduler adds, names the pod, and the node if one is being read.
        files: the plugin files; the error names the innermost traceback line in one of them.
        what: a description of the problem, if the exception alone does not explain it.
    """
    where = files[0] if files else ""
    function = ""
    if isinstance(problem, SyntaxError) and problem.filename in files:
        where = f"{problem.filename}:{problem.lineno}"
    else:
        for frame in traceback.extract_tb(problem.__traceback__):
            if frame.filename in files:
                where, function = f"{frame.filename}:{frame.lineno}", frame.name
    text = problem.msg if isinstance(problem, SyntaxError) else str(problem)
    got = f"{type(problem).__name__}: {text}" if text else type(problem).__name__
    if isinstance(problem, SyntaxError) and problem.filename in files:
        got += _marked_line(problem)
    notes = getattr(problem, "__notes__", ())
    subject = f" ({notes[-1]})" if notes else ""
    return PluginError(f"{what or f'the plugin failed in {function}(){subject}'}: {got}", where=where)


def _marked_line(problem: SyntaxError) -> str:
    """Return the line of a syntax error with a caret below the position, as Python prints it."""
    # The first line names the file, the last one the problem.
    lines = "".join(traceback.format_exception_only(problem)).splitlines()[1:-1]
    return "".join(f"\n{line}" for line in lines)


@contextmanager
def reported_plugin_errors(plugins: Sequence[CustomPlugin]) -> Iterator[None]:
    """Convert exceptions raised in the files of custom plugins into errors that name file and line.

    Raises:
        PluginError: a plugin raised an exception other than one of Bayplan's, or returned something invalid.
    """
    files = [custom.file for custom in plugins if custom.file]
    try:
        yield
    except PluginFailure as problem:
        raise PluginError(f"{problem.point} plugin {problem.plugin}: {problem.text}") from problem
    except BayplanError:
        raise
    except (Exception, SystemExit) as problem:
        # A plugin that calls sys.exit must not end the command without a message.
        if any(frame.filename in files for frame in traceback.extract_tb(problem.__traceback__)):
            raise failure_in_plugin(problem, files) from problem
        if plugins and isinstance(problem, _FROM_WRONG_TYPES):
            # The engine does not check what plugins return, so it may be a plugin's fault without a frame in its file.
            names = format_choice([custom.plugin.name for custom in plugins])
            problem.add_note(
                f"Perhaps {names} returned a value of the wrong type: "
                "bayplan.testing.check_plugin(CLASS) reports that (docs/plugins.md, Check your plugin)."
            )
        raise
