"""The registry of plugins: a value that is passed around, never a global."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bayplan.base.errors import PluginError
from bayplan.framework.configuration.extension_points import in_tree_extension_points
from bayplan.framework.plugin import REPLACED, Handle, Plugin


@dataclass(frozen=True)
class Registry:
    """Plugin classes by name.

    In-tree and custom plugins have the same rights; a custom plugin can't reuse the name of another.
    """

    plugins: Mapping[str, type[Plugin[object]]]

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
            # The name must be the class's own: a class derived from another plugin is another plugin.
            name = vars(plugin).get("name") or plugin.__name__
            if name in merged:
                raise PluginError(f"a plugin named {name} already exists", hint="another `name` in the class")
            if not plugin.extension_points():
                raise PluginError(
                    f"plugin {name} implements no extension point",
                    wanted="a subclass of bayplan.PerNodePlugin or of one of the extension points",
                )
            _check_names(name, plugin)
            plugin.name = name
            merged[name] = plugin
        return Registry(merged)

    def extension_points_of(self, name: str) -> tuple[str, ...]:
        """Return the extension points that a plugin implements."""
        return self.plugins[name].extension_points()

    def extension_points_for_configuration(self, name: str) -> Collection[str] | None:
        """Return the extension points of a plugin for the configuration loader; None if there is no such plugin.

        For in-tree plugins these are upstream's, whether this version has the plugin or not.
        """
        known = in_tree_extension_points(name)
        if known is not None:
            return known
        return self.extension_points_of(name) if name in self.plugins else None

    def make(self, name: str, arguments: object, handle: Handle) -> Plugin[object]:
        """Create a plugin."""
        return self.plugins[name](arguments, handle)


def _check_names(name: str, plugin: type[Plugin[Any]]) -> None:
    """Raise PluginError if a class defines a method that no longer exists: it would be ignored."""
    for kind in plugin.__mro__:
        for old in vars(kind):
            if old in REPLACED:
                where = "" if kind is plugin else f", inherited from {kind.__name__}"
                raise PluginError(
                    f"plugin {name} defines {old}{where}",
                    got=f"{kind.__name__}.{old}",
                    wanted="no such name (docs/plugins.md, Moving a plugin from an earlier version)",
                    hint=REPLACED[old],
                )
