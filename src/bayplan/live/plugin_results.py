"""The types of the results that plugins must return, and a registry that checks those of custom plugins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from bayplan.base.errors import PluginError
from bayplan.framework.diagnosis import PostFilterResult
from bayplan.framework.events import ClusterEvent
from bayplan.framework.plugin import Handle, Plugin, PreFilterResult
from bayplan.framework.registry import Registry
from bayplan.framework.rule import FilterRule, ScoreRule
from bayplan.framework.status import Code, Status
from bayplan.objects.meta import KubernetesObject

_SMALL_DTYPES = "biu"
_STATUS_HINT = "'return SUCCESS' (bayplan.framework.status)"


class ResultType(NamedTuple):
    """What a method must return: a description, a suggestion, and a function that checks a result and the arguments."""

    wanted: str
    fits: Callable[[Any, Sequence[Any]], bool]
    hint: str = ""


def _is_status(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, Status)


def _is_tuple(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, tuple)


def _is_params(answer: object, arguments: Sequence[Any]) -> bool:
    return answer is None or isinstance(answer, tuple)


def _is_params_or_status(answer: object, arguments: Sequence[Any]) -> bool:
    return answer is None or isinstance(answer, tuple) or (isinstance(answer, Status) and not answer.ok)


def _is_pre_filter_result(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, PreFilterResult) or (isinstance(answer, Status) and not answer.ok)


def _is_permission(answer: object, arguments: Sequence[Any]) -> bool:
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Status)):
        return False
    return answer[0].code is not Code.WAIT or (isinstance(answer[1], int) and not isinstance(answer[1], bool))


def _is_nomination(answer: object, arguments: Sequence[Any]) -> bool:
    if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Status)):
        return False
    return answer[0] is None or isinstance(answer[0], PostFilterResult)


def _is_spec(answer: object, arguments: Sequence[Any]) -> bool:
    try:
        hash(answer.key)  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        return False
    return True


def _is_hashable(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, Hashable)


def _is_row_array(answer: object, arguments: Sequence[Any]) -> bool:
    rows = arguments[-1]
    if not hasattr(rows, "__len__"):
        return True
    return isinstance(answer, np.ndarray) and answer.shape == (len(rows),) and answer.dtype.kind in _SMALL_DTYPES


def _is_verdict_array(answer: object, arguments: Sequence[Any]) -> bool:
    if not _is_row_array(answer, arguments):
        return False
    verdicts = cast("np.ndarray[Any, np.dtype[np.int64]]", answer)
    return verdicts.dtype.kind == "b" or verdicts.itemsize <= 2 or not (verdicts & ~0xFFFF).any()


def _is_filter_rule(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, FilterRule)


def _is_score_rule(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, ScoreRule)


def _is_texts(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, tuple | list) and all(isinstance(text, str) for text in answer)


def _is_object_list(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, tuple | list) and all(isinstance(each, KubernetesObject) for each in answer)


def _is_mapping(answer: object, arguments: Sequence[Any]) -> bool:
    return isinstance(answer, Mapping)


def _is_event_list(answer: object, arguments: Sequence[Any]) -> bool:
    if not isinstance(answer, tuple | list):
        return False
    pairs = [each for each in answer if isinstance(each, tuple | list) and len(each) == 2]
    known = all(isinstance(event, ClusterEvent) and (hint is None or callable(hint)) for event, hint in pairs)
    return known and len(pairs) == len(answer)


_STATUS = ResultType("a Status", _is_status, _STATUS_HINT)
_SCALE = ResultType("a tuple", _is_tuple)
_PARAMS = ResultType("params as a tuple", _is_params, "'return ()' if there are no params")
_ROWS = "an array of {count} integers"

RESULT_TYPES: Mapping[str, ResultType] = {
    "events_to_register": ResultType("a list of pairs of event and hint", _is_event_list),
    "pre_enqueue": _STATUS,
    "sort_key": ResultType("a tuple of integers", _is_tuple),
    "sign_pod": ResultType("a hashable value", _is_hashable),
    "compile": ResultType("a spec with a hashable attribute `key`", _is_spec, "a frozen dataclass with a field `key`"),
    "observe": _PARAMS,
    "pre_filter": ResultType(
        "a PreFilterResult, or a Status that skips or rejects",
        _is_pre_filter_result,
        "'return PROCEED' (bayplan.framework.plugin) if the pod may proceed",
    ),
    "filter": ResultType(f"{_ROWS} from 0 to 0xffff", _is_verdict_array, "'return rows.verdicts((condition, code))'"),
    "filter_rule": ResultType(
        "a FilterRule", _is_filter_rule, "'return super().filter_rule(spec, cluster)' if filter() evaluates the nodes"
    ),
    "reasons": ResultType("a tuple of texts", _is_texts),
    "params_after_changes": _PARAMS,
    "post_filter": ResultType(
        "a pair of PostFilterResult (or None) and Status", _is_nomination, "'return None, unschedulable(\"...\")'"
    ),
    "pre_score": ResultType("params, or a Status that skips or fails", _is_params_or_status, _PARAMS.hint),
    "score": ResultType(_ROWS, _is_row_array),
    "score_rule": ResultType(
        "a ScoreRule", _is_score_rule, "'return super().score_rule(spec, cluster)' if score() evaluates the nodes"
    ),
    "scale": _SCALE,
    "scale_over": _SCALE,
    "normalize": ResultType(_ROWS, _is_row_array),
    "reserve": _STATUS,
    "reserved": ResultType("a mapping", _is_mapping),
    "permit": ResultType(
        "a pair of Status and timeout in nanoseconds", _is_permission, "'return SUCCESS, 0' (bayplan.framework.status)"
    ),
    "pre_bind": _STATUS,
    "updates": ResultType("a list of Kubernetes objects", _is_object_list, "'return ()' if there is nothing to write"),
    "bind": _STATUS,
}
"""The types of results by method, in the order of a cycle. The engine itself does not check them."""


def describe_problem(method: str, answer: object, arguments: Sequence[Any]) -> str:
    """Return a description of the expected result of a method, or "" if the result is valid or not restricted."""
    kind = RESULT_TYPES.get(method)
    if kind is None or kind.fits(answer, arguments):
        return ""
    return kind.wanted.format(count=len(arguments[-1])) if _ROWS in kind.wanted else kind.wanted


def is_own(plugin: Plugin[Any], method: str) -> bool:
    """Return whether a plugin's method is custom code."""
    function = getattr(type(plugin), method, None)
    return function is not None and not str(getattr(function, "__module__", "")).startswith("bayplan.")


def check_created(plugin: Plugin[Any], name: str) -> None:
    """Check that the constructor of a plugin called that of its base class, and that its methods have the right parameters.

    Raises:
        PluginError: it did not, or a method has other parameters.
    """
    if not hasattr(plugin, "handle"):
        hint = "'super().__init__(arguments, handle)' as its first line"
        wanted = "an __init__ that calls that of its base class"
        raise PluginError(f"plugin {name}", wanted=wanted, got="one that doesn't", hint=hint)
    for method in (*RESULT_TYPES, "unreserve", "post_bind"):
        if is_own(plugin, method):
            _check_parameters(plugin, name, method)


def _check_parameters(plugin: Plugin[Any], name: str, method: str) -> None:
    """Raise PluginError if a method can't be called with the arguments of the method that it overrides."""
    kind = type(plugin)
    bases = [base for base in kind.__mro__ if base.__module__.startswith("bayplan.") and method in vars(base)]
    if not bases:
        return  # It is no method of the framework.
    try:
        own, bound, base = (inspect.signature(getattr(each, method)) for each in (kind, plugin, bases[0]))
    except ValueError:
        return  # A method of an extension module may have no signature.
    try:
        bound.bind(*list(base.parameters)[1:])
    except TypeError:
        wanted, got = (f"{method}({', '.join(each.parameters)})" for each in (base, own))
        raise PluginError(f"plugin {name}", wanted=wanted, got=got) from None


@dataclass(frozen=True)
class CheckedRegistry(Registry):
    """A registry that creates custom plugins whose methods raise `PluginError` if they return a value of a wrong type."""

    def make(self, name: str, arguments: object, handle: Handle) -> Plugin[object]:
        """Create a plugin.

        Raises:
            PluginError: the constructor of a custom plugin does not call that of its base, or `texts` is not a mapping of texts.
        """
        plugin = super().make(name, arguments, handle)
        if not type(plugin).__module__.startswith("bayplan."):
            check_created(plugin, name)
            texts = getattr(plugin, "texts", {})
            if not isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts.values()):
                raise PluginError(f"{name}.texts", got=f"{texts!r:.80}", wanted="a mapping of verdicts to texts")
            checked = cast("dict[str, object]", plugin.__dict__)
            for method in RESULT_TYPES:
                if is_own(plugin, method):
                    checked[method] = partial(_checked, plugin.name, method, getattr(plugin, method))
        return plugin


def _checked(plugin: str, method: str, function: Callable[..., object], *arguments: Any) -> object:
    """Call a method.

    Raises:
        PluginError: it returned a value of a wrong type.
    """
    answer = function(*arguments)
    wanted = describe_problem(method, answer, arguments)
    if wanted:
        got = "a Status of Success" if isinstance(answer, Status) and answer.ok else f"{answer!r:.80}"
        raise PluginError(f"{plugin}.{method}", got=got, wanted=wanted, hint=RESULT_TYPES[method].hint)
    return answer
