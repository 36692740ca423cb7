"""The scratch pad of a cycle."""

from __future__ import annotations

from bayplan.framework.cycle_state import CycleState


def test_what_is_written_is_read_by_key_and_type() -> None:
    state = CycleState(7)
    state.write("PreFilterP", [1])
    assert state.now_ns == 7
    assert state.read("PreFilterP", list) == [1]
    assert state.read("PreFilterP", dict) is None
    assert state.read("PreFilterQ", list) is None


def test_a_second_write_replaces_the_first() -> None:
    state = CycleState()
    state.write("k", 1)
    state.write("k", 2)
    assert state.read("k", int) == 2


def test_deleting_forgets_and_may_be_repeated() -> None:
    state = CycleState()
    state.write("k", 1)
    state.delete("k")
    state.delete("k")
    assert state.read("k", int) is None


def test_a_clone_shares_items_and_is_written_by_itself() -> None:
    state, shared = CycleState(3), [1]
    state.write("k", shared)
    state.skip_filter_plugins, state.skip_score_plugins, state.unreached_pre_filters = ("A",), ("B",), ("C",)
    twin = state.clone()
    assert twin.read("k", list) is shared
    assert (twin.now_ns, twin.skip_filter_plugins, twin.skip_score_plugins) == (3, ("A",), ("B",))
    assert twin.unreached_pre_filters == ("C",)
    twin.write("k", [2])
    twin.write("other", 1)
    twin.skip_filter_plugins = ()
    assert state.read("k", list) is shared
    assert state.read("other", int) is None
    assert state.skip_filter_plugins == ("A",)
