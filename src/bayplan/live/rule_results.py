"""Checks of the first results of rules in plain Python: a verdict or score such as 50.7 would be cut to 50 silently."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from types import FunctionType
from typing import cast

import numpy as np

from bayplan.base.errors import PluginError
from bayplan.framework.rule import Rule

METHODS = ("filter", "score", "normalize")
"""The methods of rules that return an integer for one row."""


def check_first_results(rule: Rule, plugin: str) -> None:
    """Let a new rule of a plugin raise `PluginError` if one of its first results is no integer.

    As many results are checked as there are nodes, usually those of the first pass over all nodes. Later calls cost
    nothing, because the check removes itself. Rules that evaluate many rows in one call write to an integer array and
    are not checked, nor are compiled ones.
    """
    own = cast("dict[str, object] | None", getattr(rule, "__dict__", None))
    for method in METHODS:
        # A plugin may return the same rule again before enough results are checked.
        if own is not None and method not in own and isinstance(getattr(type(rule), method, None), FunctionType):
            own[method] = _checked(rule, method, own, plugin)


def _checked(rule: Rule, method: str, own: dict[str, object], plugin: str) -> Callable[..., object]:
    function: Callable[..., object] = getattr(rule, method)
    left = rule.columns.count

    def call(*arguments: object, **named: object) -> object:
        nonlocal left
        answer = function(*arguments, **named)
        if not isinstance(answer, np.bool_):
            try:
                index(answer)  # type: ignore[arg-type]
            except TypeError:
                where = f"{plugin}.{'filter' if method == 'filter' else 'score'}_rule: {method}()"
                raise PluginError(where, got=f"{answer!r:.80}", wanted="an integer") from None
        left -= 1
        if left <= 0:
            own.pop(method, None)
        return answer

    return call
