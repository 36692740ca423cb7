"""A profile: the plugins of one scheduler name, created and sorted by extension point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from bayplan.base.errors import PluginError
from bayplan.framework.plugin import (
    EXTENSION_POINTS,
    BindPlugin,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    WeightedPlugin,
)
from bayplan.framework.registry import Registry

P = TypeVar("P", bound=Plugin[object])


class Profile:
    """The plugins of one scheduler name, by extension point and in execution order.

    Args:
        scheduler_name: the name in ``spec.schedulerName``.
        plugins: (name, weight) by extension point, in execution order; the weight is 0 if weights don't apply.
        arguments: the arguments by plugin.
        registry: creates the plugins.
        handle: passed to the plugins.
        percentage_of_nodes_to_score: the profile's own setting, or None.

    Attributes:
        custom_plugins: the custom plugins, see `Registry.custom_plugins`.
        compiling: the plugins that compile specs for plans.
        compiling_requests, compiling_volumes: the names of the plugins whose `compile` reads requests, or volumes.
        signing: the plugins that override `sign_pod`.
        sums_before_binding: how often upstream sums a pod's requests in a cycle; see `count_request_sums`.

    Raises:
        PluginError: a plugin is unknown, or does not implement its extension point.
    """

    def __init__(
        self,
        scheduler_name: str,
        plugins: Mapping[str, Sequence[tuple[str, int]]],
        *,
        arguments: Mapping[str, object],
        registry: Registry,
        handle: Handle,
        percentage_of_nodes_to_score: int | None = None,
    ) -> None:
        self.scheduler_name = scheduler_name
        self.handle = handle
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.plugins: dict[str, Plugin[object]] = {}
        for point in EXTENSION_POINTS:
            for name, _ in plugins.get(point, ()):
                if name not in self.plugins:
                    if name not in registry:
                        raise PluginError(f"profile {scheduler_name}: plugin {name!r} does not exist")
                    self.plugins[name] = registry.make(name, arguments.get(name), handle)
        self._ordered = plugins
        self.custom_plugins = registry.custom_plugins(plugins)
        self.pre_enqueue = self._at("pre_enqueue", PreEnqueuePlugin)
        self.queue_sort = self._at("queue_sort", QueueSortPlugin)
        self.pre_filter = self._at("pre_filter", PreFilterPlugin)
        self.filter = self._at("filter", FilterPlugin)
        self.post_filter = self._at("post_filter", PostFilterPlugin)
        self.pre_score = self._at("pre_score", PreScorePlugin)
        score = self._at("score", ScorePlugin)
        weights = [weight for _, weight in plugins.get("score", ())]
        self.score = tuple(WeightedPlugin(plugin, weight or 1) for plugin, weight in zip(score, weights, strict=True))
        # Precomputed because plans need them often.
        compiling = (*self.pre_filter, *self.filter, *self.pre_score, *score)
        self.compiling: tuple[Plugin[object], ...] = tuple({plugin.name: plugin for plugin in compiling}.values())
        self.compiling_requests = frozenset(plugin.name for plugin in self.compiling if plugin.compiles_requests)
        self.compiling_volumes = frozenset(plugin.name for plugin in self.compiling if plugin.compiles_volumes)
        self.signing = tuple(plugin for plugin in self.plugins.values() if type(plugin).sign_pod is not Plugin.sign_pod)
        self.sums_before_binding = 0
        self.count_request_sums()
        self.reserve = self._at("reserve", ReservePlugin)
        self.permit = self._at("permit", PermitPlugin)
        self.pre_bind = self._at("pre_bind", PreBindPlugin)
        self.bind = self._at("bind", BindPlugin)
        self.post_bind = self._at("post_bind", PostBindPlugin)

    def count_request_sums(self, pre_filter_runs: int = 1) -> None:
        """Compute how often upstream sums a pod's requests before Score, and before the binding.

        Matters only for pods for which `bayplan.objects.requests.repeats_overhead` returns True.
        """
        before_score = pre_filter_runs * sum(plugin.sums_in_pre_filter for plugin in self.pre_filter)
        for plugin in self.plugins.values():
            plugin.earlier_sums = before_score
        self.sums_before_binding = before_score + sum(plugin.sums_in_pre_score for plugin in self.pre_score)

    def _at(self, point: str, base: type[P]) -> tuple[P, ...]:
        found = []
        for name, _ in self._ordered.get(point, ()):
            plugin = self.plugins[name]
            if not isinstance(plugin, base) or point not in plugin.extension_points():
                raise PluginError(
                    f"profile {self.scheduler_name}: plugin {name} does not implement {point}",
                    wanted=f"one of {', '.join(plugin.extension_points())}",
                    got=point,
                )
            found.append(plugin)
        return tuple(found)
