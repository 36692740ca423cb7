"""A registry that isolates failures of custom plugins: each of their methods is called through a `PluginRunner`.

If a method returns a status for a pod (Reserve, Permit, PreBind, Bind, PreEnqueue, PostFilter), a failure becomes an
error status. Failures of methods without a result (Unreserve, PostBind) are recorded, and scheduling continues. Any
other failure ends the cycle with `PluginFailure` (see `Scheduler.survives_plugins`). Built-in plugins are called
directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from bayplan.base.errors import BayplanError, PluginError, PluginFailure
from bayplan.framework.events import ClusterEvent, QueueingHint
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.plugin import Handle, Plugin
from bayplan.framework.registry import Registry
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.framework.status import error
from bayplan.live.guarded_rules import GuardedFilterRule, GuardedScoreRule
from bayplan.live.plugin_results import check_created, describe_problem, is_custom, plain_result
from bayplan.live.plugin_runner import PluginRunner
from bayplan.live.rule_results import check_first_results

_POINTS = {
    "sign_pod": "PreFilter",
    "compile": "PreFilter",
    "observe": "PreFilter",
    "pre_filter": "PreFilter",
    "pre_filter_reads": "PreFilter",
    "filter": "Filter",
    "reasons": "Filter",
    "params_after_changes": "Filter",
    "pre_score": "PreScore",
    "pre_score_reads": "PreScore",
    "score": "Score",
    "score_reads": "Score",
    "score_error": "Score",
    "scale": "NormalizeScore",
    "scale_over": "NormalizeScore",
    "normalize": "NormalizeScore",
    "updates": "PreBind",
}
"""Methods whose failure ends the cycle, with the extension point for messages."""

_ANSWERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "pre_enqueue": ("PreEnqueue", error),
    "post_filter": ("PostFilter", lambda text: (None, error(text))),
    "reserve": ("Reserve", error),
    "permit": ("Permit", lambda text: (error(text), 0)),
    "pre_bind": ("PreBind", error),
    "bind": ("Bind", error),
    "unreserve": ("Reserve", lambda text: None),
    "reserved": ("Reserve", lambda text: {}),
    "post_bind": ("PostBind", lambda text: None),
    "stop_waiting": ("PreEnqueue", lambda text: None),
    "sort_key": ("QueueSort", lambda text: ()),
}
"""Methods whose failure becomes a result: the extension point, and the function that makes the result from a message."""

_CALLS_OWN_CODE = ("filter", "score")
"""Methods of `PerNodePlugin` that call the code of the plugin's author."""


@dataclass(frozen=True)
class GuardedRegistry(Registry):
    """A registry that guards the custom plugins that it creates.

    Attributes:
        runner: the runner that calls their code.
    """

    runner: PluginRunner

    @classmethod
    def of(cls, registry: Registry, runner: PluginRunner) -> GuardedRegistry:
        """Return a registry with the same plugins whose custom ones a runner calls."""
        return cls(registry.plugins, runner, in_tree=registry.in_tree)

    def make(self, name: str, arguments: object, handle: Handle) -> Plugin[object]:
        """Create a plugin.

        Raises:
            PluginError: a custom plugin raised an exception while it was created, or can't be used, see `check_created`.
        """
        kind = self.plugins[name]
        if kind.__module__.startswith("bayplan."):
            return kind(arguments, handle)
        try:
            plugin = self.runner.call(name, "New", kind, arguments, handle)
        except PluginFailure as failure:
            raise PluginError(f"plugin {name} can't be created: {failure.text}") from None
        check_created(plugin, name)
        guard(plugin, self.runner)
        return plugin


def guard(plugin: Plugin[Any], runner: PluginRunner) -> None:
    """Wrap the methods of a plugin that run custom code, so that the runner makes each call."""
    guarded = cast("dict[str, object]", plugin.__dict__)
    for method, point in _POINTS.items():
        if _runs_custom_code(plugin, method):
            function = getattr(plugin, method)
            guarded[method] = partial(_checked, runner, plugin.name, point, method, function)
    for method, (point, answer) in _ANSWERS.items():
        if _runs_custom_code(plugin, method):
            function = getattr(plugin, method)
            guarded[method] = partial(_answered, runner, plugin.name, point, method, function, answer)
    if _runs_custom_code(plugin, "filter_rule"):
        guarded["filter_rule"] = partial(_filter_rule, runner, plugin.name, getattr(plugin, "filter_rule"))  # noqa: B009
    if _runs_custom_code(plugin, "score_rule"):
        guarded["score_rule"] = partial(_score_rule, runner, plugin.name, getattr(plugin, "score_rule"))  # noqa: B009
    if _runs_custom_code(plugin, "events_to_register"):
        guarded["events_to_register"] = partial(_events, runner, plugin.name, plugin.events_to_register)


def _runs_custom_code(plugin: Plugin[Any], method: str) -> bool:
    return is_custom(plugin, method) or (isinstance(plugin, PerNodePlugin) and method in _CALLS_OWN_CODE)


def _checked(
    runner: PluginRunner,
    plugin: str,
    point: str,
    method: str,
    function: Callable[..., object],
    /,
    *arguments: Any,
    **named: Any,
) -> object:
    """Call a method whose failure ends the cycle; an invalid result counts as a failure."""
    answer = runner.call(plugin, point, partial(function, **named) if named else function, *arguments)
    wrong = describe_problem(method, answer, function, arguments, named)
    if wrong:
        raise PluginFailure(plugin, point, f"{method}() returned {answer!r:.80}, expected {wrong}")
    return answer


def _answered(
    runner: PluginRunner,
    plugin: str,
    point: str,
    method: str,
    function: Callable[..., object],
    answer: Callable[[str], object],
    /,
    *arguments: Any,
    **named: Any,
) -> object:
    """Call a method; if it fails or returns something invalid, return the result for failures."""
    try:
        found = runner.call(plugin, point, partial(function, **named) if named else function, *arguments)
    except PluginFailure as failure:
        return answer(failure.text)
    wrong = describe_problem(method, found, function, arguments, named)
    return answer(f"returned {found!r:.80}, expected {wrong}") if wrong else plain_result(method, found)


def _filter_rule(
    runner: PluginRunner, plugin: str, function: Callable[..., FilterRule], /, *arguments: Any, **named: Any
) -> FilterRule:
    rule = runner.call(plugin, "Filter", partial(function, **named), *arguments)
    if not isinstance(rule, FilterRule):
        raise PluginFailure(plugin, "Filter", f"filter_rule() returned {rule!r:.80}, expected a FilterRule")
    check_first_results(rule, plugin)
    return GuardedFilterRule(rule, runner, plugin)


def _score_rule(
    runner: PluginRunner, plugin: str, function: Callable[..., ScoreRule], /, *arguments: Any, **named: Any
) -> ScoreRule:
    rule = runner.call(plugin, "Score", partial(function, **named), *arguments)
    if not isinstance(rule, ScoreRule):
        raise PluginFailure(plugin, "Score", f"score_rule() returned {rule!r:.80}, expected a ScoreRule")
    check_first_results(rule, plugin)
    return GuardedScoreRule(rule, runner, plugin)


def _events(
    runner: PluginRunner, plugin: str, function: Callable[[], Sequence[tuple[ClusterEvent, QueueingHint | None]]]
) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
    """Return the events of a plugin. Its hints are guarded: if a hint fails, the pod is queued, as in upstream."""
    try:
        events = runner.call(plugin, "EventsToRegister", function)
        return [(event, None if hint is None else partial(_hint, runner, plugin, hint)) for event, hint in events]
    except (TypeError, ValueError, BayplanError) as problem:
        raise PluginError(f"{plugin}.events_to_register", got=str(problem), wanted="pairs of event and hint") from None


def _hint(
    runner: PluginRunner, plugin: str, hint: QueueingHint, pod: Any, old: object | None, new: object | None
) -> bool:
    try:
        return bool(runner.call(plugin, "QueueingHint", hint, pod, old, new))
    except PluginFailure:
        return True
