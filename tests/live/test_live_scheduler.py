"""The wiring of `bayplan schedule`."""

from __future__ import annotations

from typing import cast

from bayplan.app.live_scheduler import LiveOptions, LiveScheduler
from bayplan.engine.records import RecordLevel
from bayplan.live.dispatcher import Dispatcher


def test_decisions_are_not_stored_because_nothing_reads_them() -> None:
    engine = LiveScheduler(LiveOptions(), print)._make_engine(cast("Dispatcher", None))
    assert engine.call(lambda scheduler: scheduler.records.level) is RecordLevel.OFF
