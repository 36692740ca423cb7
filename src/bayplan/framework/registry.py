"""The registry of plugin classes. It is passed as a value; there is no global registry."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bayplan.base.errors import PluginError
from bayplan.base.near_names import near_name
from bayplan.framework.configuration.extension_points import in_tree_extension_points
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import EXTENSION_POINTS, REPLACED, Handle, Plugin, Reads
from bayplan.framework.rule import Rule

_PER_NODE_METHODS = ("filter_node", "score_node")
"""The methods of `PerNodePlugin`; a subclass overrides at least one of them."""


@dataclass(frozen=True)
class Registry:
    """Plugin classes by name. `in_tree` names kube-scheduler's own plugins among them."""

    plugins: Mapping[str, type[Plugin[object]]]
    in_tree: Collection[str] = field(default=(), kw_only=True)

    def __contains__(self, name: str) -> bool:
        return name in self.plugins

    def __iter__(self) -> Iterator[str]:
        return iter(self.plugins)

    def with_plugins(self, *plugins: type[Plugin[Any]]) -> Registry:
        """Return a registry that also contains these plugins.

        Raises:
            PluginError: a name is taken, or a class is not a usable plugin.
        """
        merged = dict(self.plugins)
        for plugin in plugins:
            # Use only a name that the class itself defines: a subclass of another plugin is another plugin.
            name = vars(plugin).get("name") or plugin.__name__
            if name in merged:
                raise PluginError(f"a plugin named {name} already exists", hint="another `name` in the class")
            _check_names(name, plugin)
            _check_methods(name, plugin)
            if not plugin.extension_points():
                raise _without_extension_point(name, plugin)
            _check_constructor(name, plugin)
            _check_reads(name, plugin)
            if issubclass(plugin, PerNodePlugin):
                _check_parameters(name, plugin)
            plugin.name = name
            merged[name] = plugin
        return Registry(merged, in_tree=self.in_tree)

    def custom_plugins(self, enabled: Mapping[str, Sequence[tuple[str, int]]]) -> list[str]:
        """Return the custom plugins of a profile, sorted by name: ``NAME=WEIGHT``, or ``NAME`` without a weight.

        `enabled`: (name, weight) by extension point; the weight is 0 if weights don't apply.
        """
        weights: dict[str, int] = {}
        for entries in enabled.values():
            for name, weight in entries:
                if name in self and name not in self.in_tree:
                    weights[name] = max(weight, weights.get(name, 0))
        return [f"{name}={weight}" if weight else name for name, weight in sorted(weights.items())]

    def extension_points_of(self, name: str) -> tuple[str, ...]:
        """Return the extension points that a registered plugin implements."""
        return self.plugins[name].extension_points()

    def extension_points_for_configuration(self, name: str) -> Collection[str] | None:
        """Return the extension points of a plugin for the configuration loader; None if there is no such plugin.

        For in-tree plugins these are upstream's extension points, even if this version lacks the plugin.
        """
        return in_tree_extension_points(name) or (self.extension_points_of(name) if name in self.plugins else None)

    def make(self, name: str, arguments: object, handle: Handle) -> Plugin[object]:
        """Create the plugin `name`."""
        return self.plugins[name](arguments, handle)


def _without_extension_point(name: str, plugin: type[Plugin[Any]]) -> PluginError:
    """Return the error for a class that implements no extension point; suggest the method that was probably meant."""
    if not issubclass(plugin, PerNodePlugin):
        return PluginError(
            f"plugin {name} implements no extension point",
            wanted="a subclass of bayplan.PerNodePlugin or of one of the extension points",
            got=f"a subclass of {', '.join(base.__name__ for base in plugin.__bases__)}",
        )
    own = [each for each in vars(plugin) if not each.startswith("__")]
    wanted = " or ".join(f"a method {method}()" for method in _PER_NODE_METHODS)
    for method in _PER_NODE_METHODS:
        if meant := near_name(method, own):
            return PluginError(f"plugin {name}", wanted=wanted, got=f"{meant}()", hint=f"{method}()")
    return PluginError(f"plugin {name}", wanted=wanted, got="neither")


def _check_constructor(name: str, plugin: type[Plugin[Any]]) -> None:
    """Raise PluginError if a constructor can't be called with arguments and handle."""
    import inspect  # Takes 10 ms, and only custom plugins need it.

    try:
        signature = inspect.signature(plugin)
    except ValueError:
        return  # A class of an extension module may have no signature.
    try:
        signature.bind(None, None)
    except TypeError:
        parameters = ", ".join(("self", *map(str, signature.parameters.values())))
        wanted = "__init__(self, arguments, handle)"
        raise PluginError(f"plugin {name}", wanted=wanted, got=f"__init__({parameters})") from None


def _check_methods(name: str, plugin: type[Plugin[Any]]) -> None:
    """Raise PluginError if a class has a method with the name and parameters of an extension point without its base class."""
    import inspect  # Takes 10 ms, and only custom plugins need it.

    for point, base in EXTENSION_POINTS.items():
        method, called = getattr(plugin, point, None), getattr(base, point, None)
        if issubclass(plugin, base) or called is None or not callable(method) or isinstance(method, type):
            continue
        parameters = [*inspect.signature(called).parameters]
        if isinstance(inspect.getattr_static(plugin, point), staticmethod | classmethod):
            del parameters[0]
        try:
            inspect.signature(method).bind(*parameters)
        except TypeError:
            continue  # Another method that happens to have this name.
        # Python refuses a class before a subclass of it, so Plugin is left out.
        bases = ", ".join(
            each.__name__ for each in (*plugin.__bases__, base) if each is base or not issubclass(base, each)
        )
        wanted = f"the base class {base.__name__}, without which the scheduler never calls {point}()"
        got, hint = f"a subclass of {plugin.__bases__[0].__name__}", f"class {plugin.__name__}({bases}): ..."
        raise PluginError(f"plugin {name}", wanted=wanted, got=got, hint=hint)


def _check_reads(name: str, plugin: type[Plugin[Any]]) -> None:
    """Raise PluginError if `reads` or `pre_reads` is neither of the type `Reads` nor computed by a descriptor."""
    for attribute in ("reads", "pre_reads"):
        value = getattr(plugin, attribute, Reads.NODES)
        is_computed = hasattr(value, "__get__") and not callable(value)  # For example a property, not a method.
        if not (is_computed or isinstance(value, Reads)):
            wanted = f"{attribute} of the type bayplan.Reads"
            raise PluginError(f"plugin {name}", wanted=wanted, got=repr(value), hint="Reads.NODES")


def _check_parameters(name: str, plugin: type[PerNodePlugin]) -> None:
    """Raise PluginError if a method for one node can't be called with a pod and a node."""
    import inspect  # Takes 10 ms, and only custom plugins need it.

    for method in _PER_NODE_METHODS:
        try:
            inspect.signature(getattr(object.__new__(plugin), method)).bind("pod", "node")
        except TypeError:
            got = f"{method}{inspect.signature(getattr(plugin, method))}"
            raise PluginError(f"plugin {name}", wanted=f"{method}(self, pod, node)", got=got) from None


def _check_names(name: str, plugin: type[Plugin[Any]]) -> None:
    """Raise PluginError if a class, or a rule in its module, defines a name in `REPLACED`, which would be ignored."""
    module = sys.modules.get(plugin.__module__)
    named = [] if module is None else vars(module).values()
    rules = [each for each in named if isinstance(each, type) and issubclass(each, Rule)]
    for kind in (*plugin.__mro__, *rules):
        for old in vars(kind):
            if old in REPLACED:
                place = "" if kind is plugin else f" in {kind.__name__}"
                raise PluginError(
                    f"plugin {name} defines {old}{place}, which this version no longer uses: {REPLACED[old]} "
                    "(docs/plugins.md, Migrate a plugin)"
                )
