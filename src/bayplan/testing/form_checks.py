"""The checks of the conformance kit that ask in several forms: all rows, some, one; arrays and numbers; one pod and several."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.framework.plugin import FilterPlugin, Plugin, Reads, ScorePlugin
from bayplan.objects.pod import Pod
from bayplan.state.hypothetical import HypotheticalRows
from bayplan.state.state_rows import StateRows
from bayplan.state.supposed_pods import PodKinds, SupposedPods
from bayplan.state.views import GatheredRows, Rows
from bayplan.testing.plugin_subject import Make, PluginFault, Subject
from bayplan.testing.worlds import World, typed


def filter_answers_alike_in_every_form(make: Make, world: World) -> None:
    """All rows at once, rows in any order, one row of arrays and one row of plain numbers give the same verdicts."""
    subject = make(world)
    params = subject.filter_params() if subject.filters else None
    if params is None:
        return
    every = _array(subject, "filter()", subject.verdicts(params), np.uint16)

    def tell(row: int, got: object, form: str) -> None:
        whole = subject.told(params, int(every[row]))
        raise PluginFault(
            f"filter() of {subject.name(row)}: all rows at once say {whole}, {form} says {_shown(subject, params, got)}"
        )

    index = np.array(subject.rows[::-1], dtype=np.intp)
    some = _array(subject, "filter()", subject.verdicts(params, Rows(subject.state, index)), np.uint16, len(index))
    for row, got in zip(index.tolist(), some.tolist(), strict=True):
        if got != every[row]:
            tell(row, got, "an array of some rows")
    for row in subject.rows:
        for form, view in subject.one_row_forms(row):
            got = _number(subject, "filter()", subject.verdicts(params, view), view)
            if got != every[row]:
                tell(row, got, form)


def score_answers_alike_in_every_form(make: Make, world: World) -> None:
    """All rows at once, rows in any order, one row of arrays and one row of plain numbers give the same raw scores."""
    subject = make(world)
    params = subject.score_params() if subject.scores else None
    if params is None:
        return
    every = _array(subject, "score()", subject.raw(params), np.int64)
    index = np.array(subject.rows[::-1], dtype=np.intp)
    some = _array(subject, "score()", subject.raw(params, Rows(subject.state, index)), np.int64, len(index))
    for row, got in zip(index.tolist(), some.tolist(), strict=True):
        if got != every[row]:
            raise PluginFault(
                f"score() of {subject.name(row)}: all rows at once say {every[row]}, an array of some rows {got}"
            )
    for row in subject.rows:
        for form, view in subject.one_row_forms(row):
            got = _number(subject, "score()", subject.raw(params, view), view)
            if got != every[row]:
                text = f"score() of {subject.name(row)}: all rows at once say {every[row]}, {form} says {got}"
                raise PluginFault(text)


def states_are_answered_as_the_rows_in_them(make: Make, world: World) -> None:
    """A plugin that declares `amounts_only`, asked about states instead of rows, gives the verdicts and raw scores of these."""
    subject = make(world)
    if not subject.plugin.amounts_only or not subject.state.small:
        return
    states = subject.state.usage_states
    for point, params, ask in (
        ("filter()", subject.filter_params() if subject.filters else None, subject.verdicts),
        ("score()", subject.score_params() if subject.scores else None, subject.raw),
    ):
        if params != ():
            continue
        # Not earlier: what a pod asks for may be a resource that nobody has heard of.
        states.follow()
        every = ask(params)
        try:
            by_state = ask(params, StateRows(subject.state))
        except TypeError as refusal:
            raise PluginFault(f"{point} about states of nodes: {refusal}") from refusal
        for row in subject.rows:
            place = states.codes.item(row)
            got = by_state[place] if place < len(by_state) else "nothing"
            if got != every[row]:
                raise PluginFault(
                    f"{point} of {subject.name(row)} is {every[row]}, and {got} of the state that the node is in: "
                    "amounts_only promises that nothing is read but what nodes offer and what pods request there"
                )


def supposed_usage_is_read_through_the_view(make: Make, world: World) -> None:
    """A scalar rule asked about supposed usage answers as it would if pods were really gone."""
    subject = make(world)
    plugin = subject.plugin
    params = subject.filter_params() if subject.filters else None
    if params is None or not plugin.scalar or plugin.reads & (Reads.OBJECTS | Reads.PORTS):
        return
    kind = type(plugin)
    if kind.params_after_changes is not FilterPlugin.params_after_changes or kind.observe is not Plugin.observe:
        # Params that count pods: such a plugin is asked in true trials.
        return
    state, rows = subject.state, np.array(subject.rows, dtype=np.intp)
    with state.trial():
        for key in list(state.pods):
            state.remove_pod(key)
        empty = state.usage[:, rows].copy()
        real = subject.verdicts(params, Rows(state, rows)).tolist()
    supposed = subject.verdicts(params, HypotheticalRows(state, rows, empty)).tolist()
    for row, want, got in zip(rows.tolist(), real, supposed, strict=True):
        if want != got:
            raise PluginFault(
                f"filter() of {subject.name(row)} with all pods gone: it says {subject.told(params, want)}, but "
                f"{subject.told(params, got)} where that is only supposed; a scalar rule must read usage from `rows`, "
                "never from `rows.state`"
            )


def supposed_pods_are_counted_as_if_gone(make: Make, world: World) -> None:
    """A plugin whose params count pods, asked about supposed ones, answers as if the pods of a row were really gone."""
    subject = make(world)
    plugin, kind = subject.plugin, type(subject.plugin)
    params = subject.filter_params() if subject.filters else None
    if params is None or kind.filter_supposing is FilterPlugin.filter_supposing:
        return
    state, kinds = subject.state, PodKinds()
    for row in subject.rows:
        index = np.array([row], dtype=np.intp)
        numbers = [[kinds.number(info)] for info in state.pods_on[row].values()]
        present = np.array(numbers, dtype=np.intp).reshape(-1, 1)
        pods = SupposedPods(state, index, None, kinds, present, np.ones(present.shape, dtype=np.bool_))
        view = HypotheticalRows(state, index, np.zeros_like(state.usage[:, index]), pods)
        got = int(plugin.filter_supposing(subject.spec, params, view)[0])
        with state.trial():
            for key in list(state.pods_on[row]):
                state.remove_pod(key)
            counted = plugin.params_after_changes(subject.spec, params, state)
            want = int(plugin.filter(subject.spec, counted, Rows(state, index))[0])
        if got != want:
            raise PluginFault(
                f"filter_supposing() of {subject.name(row)} without its pods says {subject.told(params, got)}, and "
                f"{subject.told(params, want)} once they are gone"
            )


def several_specs_at_once_are_answered_alike(make: Make, world: World) -> None:
    """`filter_many` and `score_many` give for several specs what `filter` and `score` give for each of them."""
    subject = make(world)
    plugin, state = subject.plugin, subject.state
    if subject.spec is None:
        return
    specs = [subject.spec, subject.compiled(typed(world.newcomer, Pod))]
    rows = GatheredRows(state, np.array(subject.rows, dtype=np.intp))
    asked = []
    if subject.filters and type(plugin).filter_many is not FilterPlugin.filter_many:
        asked.append(("filter", plugin.filter_many(specs, rows), [plugin.filter(spec, (), rows) for spec in specs]))
    if subject.scores and type(plugin).score_many is not ScorePlugin.score_many:
        asked.append(("score", plugin.score_many(specs, rows), [plugin.score(spec, (), rows) for spec in specs]))
    for point, together, alone in asked:
        if together is not None and not np.array_equal(together, np.array(alone)):
            raise PluginFault(
                f"{point}_many() says {np.asarray(together).tolist()} of two pods, {point}() of each "
                f"{np.array(alone).tolist()}"
            )


def _array(subject: Subject, point: str, values: Any, dtype: type[np.generic], count: int | None = None) -> Any:
    count = subject.state.nodes.count if count is None else count
    if not isinstance(values, np.ndarray) or values.dtype != dtype or values.shape != (count,):
        got = f"{values.dtype}{list(values.shape)}" if isinstance(values, np.ndarray) else repr(values)
        raise PluginFault(f"{point} returned {got}, not {dtype.__name__}[{count}]")
    return values


def _number(subject: Subject, point: str, value: Any, view: Rows) -> int:
    if not view.scalar:
        return int(_array(subject, point, value, np.uint16 if point == "filter()" else np.int64, 1)[0])
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise PluginFault(
            f"{point} returned {value!r} ({type(value).__name__}) for plain Python numbers, not an int: use the number "
            "functions of `rows`, or declare scalar = False"
        )
    return int(value)


def _shown(subject: Subject, params: Any, got: object) -> str:
    return subject.told(params, got) if isinstance(got, int) else repr(got)
