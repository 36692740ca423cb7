"""The state that plugins share within a scheduling cycle."""

from __future__ import annotations

from bayplan.framework.cycle_state import CycleState


def test_a_value_is_read_by_key_and_type() -> None:
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


def test_delete_is_idempotent() -> None:
    state = CycleState()
    state.write("k", 1)
    state.delete("k")
    state.delete("k")
    assert state.read("k", int) is None
