"""Adds plugin and pod to exceptions of custom plugins that are called outside of scheduling cycles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from bayplan.framework.plugin import Plugin
from bayplan.objects.pod import Pod

P = ParamSpec("P")
T = TypeVar("T")


def noting_pod(plugin: Plugin[Any], method: Callable[Concatenate[Pod, P], T]) -> Callable[Concatenate[Pod, P], T]:
    """Return a method of a plugin, or a queueing hint, that adds a note to its exceptions.

    The scheduler notes the pod of the current cycle, but PreEnqueue, QueueSort and queueing hints run for other pods. Methods
    of in-tree plugins are returned unchanged.
    """
    if type(plugin).__module__.startswith("bayplan."):
        return method
    name = plugin.name

    def noted(pod: Pod, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(pod, *args, **kwargs)
        except Exception as problem:
            problem.add_note(f"plugin {name}, pod {pod.key}")
            raise

    return noted
