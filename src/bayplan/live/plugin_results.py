"""The types of the results that plugins must return, and a registry that checks those of custom plugins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from operator import index
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from bayplan.base.errors import PluginError
from bayplan.framework.diagnosis import PostFilterResult
from bayplan.framework.events import ClusterEvent
from bayplan.framework.plugin import Handle, Plugin, PreFilterResult
from bayplan.framework.registry import Registry
from bayplan.framework.rule import FilterRule, Rule, ScoreRule
from bayplan.framework.status import Code, Status
from bayplan.live.rule_results import check_first_results
from bayplan.objects.meta import KubernetesObject

_MAX_SCORE = (1 << 63) - 1
_MAX_VERDICT = 0xFFFF
_ROWS_PLACES = {"filter": 2, "score": 2, "normalize": 3}
"""The place of the argument `rows` of the methods that return one number per row."""
_STATUS_HINT = "'return SUCCESS' (bayplan.framework.status)"


class ResultType(NamedTuple):
    """The type of a method's results.

    Attributes:
        wanted: the description in errors; ``{count}`` is the number of rows.
        is_valid: returns whether a result is valid, given the argument `rows` of the call, or None without one.
        hint: the suggestion in errors.
    """

    wanted: str
    is_valid: Callable[[Any, Any], bool]
    hint: str = ""


def _instance_of(kind: type) -> Callable[[Any, Any], bool]:
    """Return a check that accepts the instances of a class."""
    return lambda answer, rows: isinstance(answer, kind)


def _is_integers(answer: object, rows: Any) -> bool:
    try:
        return isinstance(answer, tuple) and all(index(each) is not None for each in answer)
    except TypeError:
        return False


def _is_params(answer: object, rows: Any) -> bool:
    return answer is None or isinstance(answer, tuple)


def _is_params_or_status(answer: object, rows: Any) -> bool:
    return answer is None or isinstance(answer, tuple) or (isinstance(answer, Status) and not answer.ok)


def _is_pre_filter_result(answer: object, rows: Any) -> bool:
    return isinstance(answer, PreFilterResult) or (isinstance(answer, Status) and not answer.ok)


def _is_permission(answer: object, rows: Any) -> bool:
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Status)):
        return False
    return answer[0].code is not Code.WAIT or (isinstance(answer[1], Integral) and not isinstance(answer[1], bool))


def _is_nomination(answer: object, rows: Any) -> bool:
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Status)):
        return False
    return answer[0] is None or isinstance(answer[0], PostFilterResult)


def _is_spec(answer: object, rows: Any) -> bool:
    try:
        hash(answer.key)  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        return False
    return True


def _is_row_array(answer: object, rows: Any) -> bool:
    return isinstance(answer, np.ndarray) and answer.dtype.kind in "biu" and answer.shape == (len(rows),)


def _is_score_array(answer: object, rows: Any) -> bool:
    if not hasattr(rows, "__len__"):
        return True
    if not _is_row_array(answer, rows):
        return False
    scores = cast("np.ndarray[Any, np.dtype[np.int64]]", answer)
    return scores.dtype.kind != "u" or scores.itemsize < 8 or bool((scores <= _MAX_SCORE).all())


def _is_verdict_array(answer: object, rows: Any) -> bool:
    if not hasattr(rows, "__len__"):
        return True
    if not _is_row_array(answer, rows):
        return False
    verdicts = cast("np.ndarray[Any, np.dtype[np.int64]]", answer)
    if verdicts.dtype.kind in "bu" and verdicts.itemsize <= 2:
        return True
    return bool(((verdicts >= 0) & (verdicts <= _MAX_VERDICT)).all())


def _is_texts(answer: object, rows: Any) -> bool:
    return isinstance(answer, tuple | list) and all(isinstance(text, str) for text in answer)


def _is_object_list(answer: object, rows: Any) -> bool:
    return isinstance(answer, tuple | list) and all(isinstance(each, KubernetesObject) for each in answer)


def _is_event_list(answer: object, rows: Any) -> bool:
    if not isinstance(answer, tuple | list):
        return False
    pairs = [each for each in answer if isinstance(each, tuple | list) and len(each) == 2]
    known = all(isinstance(event, ClusterEvent) and (hint is None or callable(hint)) for event, hint in pairs)
    return known and len(pairs) == len(answer)


_STATUS = ResultType("a Status", _instance_of(Status), _STATUS_HINT)
_SCALE = ResultType("a tuple", _instance_of(tuple))
_PARAMS = ResultType("params as a tuple", _is_params, "'return ()' if there are no params")
_ROWS = "an array of {count} integers"

RESULT_TYPES: Mapping[str, ResultType] = {
    "events_to_register": ResultType("a list of pairs of event and hint", _is_event_list),
    "pre_enqueue": _STATUS,
    "sort_key": ResultType("a tuple of integers", _is_integers),
    "sign_pod": ResultType("a hashable value", _instance_of(Hashable)),
    "compile": ResultType("a spec with a hashable attribute `key`", _is_spec, "a frozen dataclass with a field `key`"),
    "observe": _PARAMS,
    "pre_filter": ResultType(
        "a PreFilterResult, or a Status that skips or rejects",
        _is_pre_filter_result,
        "'return PROCEED' (bayplan.framework.plugin) if the pod may proceed",
    ),
    "filter": ResultType(f"{_ROWS} from 0 to 0xffff", _is_verdict_array, "'return rows.verdicts((condition, code))'"),
    "filter_rule": ResultType(
        "a FilterRule",
        _instance_of(FilterRule),
        "'return super().filter_rule(spec, cluster)' if filter() evaluates the nodes",
    ),
    "reasons": ResultType("a tuple of texts", _is_texts),
    "params_after_changes": _PARAMS,
    "post_filter": ResultType(
        "a pair of PostFilterResult (or None) and Status", _is_nomination, "'return None, unschedulable(\"...\")'"
    ),
    "pre_score": ResultType("params, or a Status that skips or fails", _is_params_or_status, _PARAMS.hint),
    "score": ResultType(f"{_ROWS} that fit int64", _is_score_array),
    "score_rule": ResultType(
        "a ScoreRule",
        _instance_of(ScoreRule),
        "'return super().score_rule(spec, cluster)' if score() evaluates the nodes",
    ),
    "scale": _SCALE,
    "scale_over": _SCALE,
    "normalize": ResultType(f"{_ROWS} that fit int64", _is_score_array),
    "reserve": _STATUS,
    "reserved": ResultType("a mapping", _instance_of(Mapping)),
    "permit": ResultType(
        "a pair of Status and timeout in nanoseconds", _is_permission, "'return SUCCESS, 0' (bayplan.framework.status)"
    ),
    "pre_bind": _STATUS,
    "updates": ResultType("a list of Kubernetes objects", _is_object_list, "'return ()' if there is nothing to write"),
    "bind": _STATUS,
}
"""The types of results by method, in the order of a cycle. The engine itself does not check them."""


def describe_problem(
    method: str,
    answer: object,
    function: Callable[..., object],
    arguments: Sequence[Any],
    named: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Return a description of the expected result of a call, or "" if the result is valid or not restricted.

    Args:
        method: the name of the method.
        answer: its result.
        function: the method, bound to its plugin.
        arguments, named: its arguments.
    """
    kind = RESULT_TYPES.get(method)
    if kind is None:
        return ""
    place, rows = _ROWS_PLACES.get(method), None
    if place is not None:
        rows = arguments[place] if len(arguments) > place else _argument(function, place, arguments, named)
    if kind.is_valid(answer, rows):
        return ""
    return kind.wanted if place is None else kind.wanted.format(count=len(cast("Sequence[object]", rows)))


def plain_result(method: str, answer: Any) -> object:
    """Return a valid result; a timeout of Permit as an int, which records and responses can encode."""
    if method == "permit" and isinstance(answer[1], Integral):
        return answer[0], int(answer[1])
    return answer


def _argument(function: Callable[..., object], place: int, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return the argument of a call that the framework passes at a place; None if it can't be determined."""
    try:
        return inspect.signature(function).bind(*arguments, **named).args[place]
    except (TypeError, ValueError, IndexError):
        return named.get("rows")


def is_custom(plugin: Plugin[Any], method: str) -> bool:
    """Return whether a plugin's method is custom code."""
    function = getattr(type(plugin), method, None)
    return function is not None and not str(getattr(function, "__module__", "")).startswith("bayplan.")


def check_created(plugin: Plugin[Any], name: str) -> None:
    """Check that a plugin called the constructor of its base class, and that its methods and `texts` can be used.

    Raises:
        PluginError: it did not, a method has other parameters or is none, or `texts` is not a mapping of texts.
    """
    if not hasattr(plugin, "handle"):
        hint = "'super().__init__(arguments, handle)' as its first line"
        wanted = "an __init__ that calls that of its base class"
        raise PluginError(f"plugin {name}", wanted=wanted, got="one that doesn't", hint=hint)
    for method in (*RESULT_TYPES, "unreserve", "post_bind"):
        if is_custom(plugin, method):
            _check_parameters(plugin, name, method)
    texts = getattr(plugin, "texts", {})
    if not isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts.values()):
        raise PluginError(f"{name}.texts", got=f"{texts!r:.80}", wanted="a mapping of verdicts to texts")


def _check_parameters(plugin: Plugin[Any], name: str, method: str) -> None:
    """Raise PluginError if a method can't be called with the arguments of the method that it overrides."""
    kind = type(plugin)
    bases = [base for base in kind.__mro__ if base.__module__.startswith("bayplan.") and method in vars(base)]
    if not bases:
        return  # It is no method of the framework.
    if not callable(getattr(plugin, method)):
        raise PluginError(f"plugin {name}.{method}", wanted="a method", got=f"{getattr(plugin, method)!r:.80}")
    try:
        own, bound, base = (inspect.signature(getattr(each, method)) for each in (kind, plugin, bases[0]))
    except (TypeError, ValueError):
        return  # A method of an extension module or a property may have no signature.
    try:
        bound.bind(*list(base.parameters)[1:])
    except TypeError:
        wanted, got = (f"{method}({', '.join(each.parameters)})" for each in (base, own))
        raise PluginError(f"plugin {name}", wanted=wanted, got=got) from None


@dataclass(frozen=True)
class CheckedRegistry(Registry):
    """A registry that creates custom plugins whose methods raise `PluginError` if they return a value of a wrong type."""

    @classmethod
    def of(cls, registry: Registry) -> CheckedRegistry:
        """Return a registry with the same plugins that checks the results of the custom ones."""
        return cls(registry.plugins, in_tree=registry.in_tree)

    def make(self, name: str, arguments: object, handle: Handle) -> Plugin[object]:
        """Create a plugin.

        Raises:
            PluginError: a custom plugin can't be used, see `check_created`.
        """
        plugin = super().make(name, arguments, handle)
        if not type(plugin).__module__.startswith("bayplan."):
            check_created(plugin, name)
            checked = cast("dict[str, object]", plugin.__dict__)
            for method in RESULT_TYPES:
                if is_custom(plugin, method):
                    checked[method] = partial(_checked, plugin.name, method, getattr(plugin, method))
        return plugin


def _checked(plugin: str, method: str, function: Callable[..., object], /, *arguments: Any, **named: Any) -> object:
    """Call a method.

    Raises:
        PluginError: it returned a value of a wrong type.
    """
    answer = function(*arguments, **named)
    wanted = describe_problem(method, answer, function, arguments, named)
    if wanted:
        got = "a Status of Success" if isinstance(answer, Status) and answer.ok else f"{answer!r:.80}"
        raise PluginError(f"{plugin}.{method}", got=got, wanted=wanted, hint=RESULT_TYPES[method].hint)
    if isinstance(answer, Rule):
        check_first_results(answer, plugin)
    return plain_result(method, answer)
