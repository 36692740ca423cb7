"""The classic queue as servers and simulations have it: it notes where attempts come from, or every move of a pod."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.classic.queue import ClassicQueue
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.queue import SchedulingQueue
from bayplan.live.instrumented_queue import InstrumentedQueue
from bayplan.sim.traced_queue import TracedQueue


class NotingClassicQueue(InstrumentedQueue, ClassicQueue):
    """A `ClassicQueue` that notes what made pods ready to be tried."""


class TracedClassicQueue(TracedQueue, ClassicQueue):
    """A `ClassicQueue` that keeps a list of moves."""


CLASSIC_QUEUES: Mapping[type[SchedulingQueue], type[ClassicQueue]] = {
    SchedulingQueue: ClassicQueue,
    EventDrivenQueue: ClassicQueue,
    InstrumentedQueue: NotingClassicQueue,
    TracedQueue: TracedClassicQueue,
}
"""The classic counterparts of the queues that hosts ask for."""
