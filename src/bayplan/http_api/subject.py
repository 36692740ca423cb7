"""What the service is about: a running server, as far as the service reads and drives it.

`bayplan.app.simulator_server` has such a server; tests make smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.store import Snapshot
from bayplan.base.clock import Clock
from bayplan.cluster.store import ChangeEvent, ObjectStore
from bayplan.engine.assemble import Assemble
from bayplan.engine.decision import Decision, Record
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.extender.connections import ExtenderConnections
from bayplan.framework.configuration.loading import Examination, SchedulerConfiguration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.registry import Registry
from bayplan.live.decision_store import LatePoints, PointSaid
from bayplan.live.noting_queue import Origin

T = TypeVar("T")


class TypedObjects(Protocol):
    """The typed objects of the cluster, kept in step with the API's store. Read on the loop thread."""

    @property
    def store(self) -> ObjectStore:
        """The objects; never written here."""
        ...

    def listen(self, listener: Callable[[Sequence[ChangeEvent]], None]) -> None:
        """Call a function with every change, on the loop thread, in the order of revisions; what is there already comes first."""
        ...


class Decisions(Protocol):
    """The decision records; any thread may read them."""

    @property
    def level(self) -> RecordLevel:
        """How much is recorded."""
        ...

    @property
    def oldest(self) -> int:
        """The number of the oldest decision whose summary is kept."""
        ...

    @property
    def oldest_full(self) -> int:
        """The number of the oldest decision whose full record may be kept."""
        ...

    @property
    def annotation_problems(self) -> Mapping[str, str]:
        """Why the result annotations of a pod can't be read, by its key."""
        ...

    def __len__(self) -> int:
        """Return how many decisions were taken so far; the next one has this number."""
        ...

    def __getitem__(self, number: int, /) -> Record:
        """Return a summary; LookupError where it is not kept."""
        ...

    def decision(self, number: int) -> Decision:
        """Return a full record; LookupError where there is none."""
        ...

    def origin(self, number: int) -> Origin | None:
        """Return what made the pod of a decision ready to be tried; None where that is not known."""
        ...

    def late_points(self, number: int) -> LatePoints | None:
        """Return which plugins a decision with a full record meets after the choice of a node; None where that is not known."""
        ...

    def said_later(self, number: int) -> Sequence[PointSaid]:
        """Return what these said beside plain success, the oldest first."""
        ...

    def is_annotated(self, number: int) -> bool:
        """Return whether a decision is another scheduler's, read from the pod's annotations."""
        ...

    def numbers_of(self, pod: str) -> Sequence[int]:
        """Return the numbers of the decisions about pods of a key, ascending, as far as they are kept."""
        ...


class PluginFailure(Protocol):
    """A plugin that raised, or that took too long."""

    @property
    def plugin(self) -> str:
        """Its name."""
        ...

    @property
    def point(self) -> str:
        """The extension point."""
        ...

    @property
    def exception(self) -> str:
        """What it raised, in one line."""
        ...

    @property
    def traceback(self) -> str:
        """Where."""
        ...

    @property
    def at_ns(self) -> int:
        """When, by the clock."""
        ...


class EngineStatus(Protocol):
    """What the engine publishes about itself; never older than a moment."""

    @property
    def decisions(self) -> int:
        """Decisions so far."""
        ...

    @property
    def decisions_per_second(self) -> float:
        """In the last seconds, in real time."""
        ...

    @property
    def p99_ms(self) -> float:
        """Of a cycle, in real time."""
        ...

    @property
    def queue(self) -> Mapping[str, int]:
        """Pods in each tier: active, backoff, unschedulable, gated."""
        ...

    @property
    def preemptions(self) -> int:
        """Pods that had to go so far."""
        ...

    @property
    def binding_failures(self) -> int:
        """Bindings that the API refused so far."""
        ...

    @property
    def plugin_failures(self) -> Sequence[PluginFailure]:
        """The newest failures of plugins."""
        ...


class Engine(Protocol):
    """The scheduler on its thread."""

    def status(self) -> EngineStatus:
        """Return what is published; never waits."""
        ...

    def ask(self, question: Callable[[Scheduler], T], timeout: float) -> T:
        """Run a question on the engine's thread, between two cycles; EngineBusy where it does not get its turn."""
        ...


class Settings(Protocol):
    """How the scheduler is set up."""

    @property
    def configuration_text(self) -> str:
        """The configuration as it was given; "" where none was."""
        ...

    @property
    def configuration(self) -> SchedulerConfiguration:
        """What it comes to."""
        ...

    @property
    def registry(self) -> Registry:
        """The plugins that there are."""
        ...

    @property
    def feature_gates(self) -> FeatureGates:
        """Settings that change decisions."""
        ...

    @property
    def plugin_files(self) -> Mapping[str, str]:
        """The files of custom plugins by the plugins' names."""
        ...

    @property
    def seed(self) -> int:
        """Of the choice among equals."""
        ...

    @property
    def assemble(self) -> Assemble:
        """What makes a scheduler from a configuration."""
        ...

    def connect(self, configuration: SchedulerConfiguration) -> ExtenderConnections:
        """Return connections with the extenders of a configuration."""
        ...

    def examine(self, text: str) -> Examination:
        """Take a configuration through all checks, with the gates and plugins of the server."""
        ...

    def default_configuration(self) -> SchedulerConfiguration:
        """Return the configuration that decides where none is given."""
        ...


class NamedSnapshot(Protocol):
    """A moment of the cluster that was kept under a name."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def taken_ns(self) -> int:
        """When, by the clock."""
        ...

    @property
    def revision(self) -> int:
        """Of the API's store."""
        ...

    @property
    def contents(self) -> Snapshot:
        """The documents of that moment."""
        ...


class Subject(Protocol):
    """A running server. All but `decisions`, `clock` and `engine` belong to the loop thread."""

    @property
    def api(self) -> Api:
        """The Kubernetes API, in process."""
        ...

    @property
    def backend(self) -> Backend:
        """The documents behind it."""
        ...

    @property
    def bridge(self) -> TypedObjects:
        """The typed objects."""
        ...

    @property
    def engine(self) -> Engine:
        """The scheduler."""
        ...

    @property
    def decisions(self) -> Decisions:
        """What it decided."""
        ...

    @property
    def clock(self) -> Clock:
        """The time of API, controllers, kubelet and scheduler."""
        ...

    @property
    def settings(self) -> Settings:
        """How the scheduler is set up."""
        ...

    @property
    def instance(self) -> str:
        """Another text at each start of a server."""
        ...

    async def configure(self, text: str) -> None:
        """Take another configuration, at once and as a whole; waiting pods are tried again.

        Raises:
            ConfigurationError: it is refused, and the old one goes on.
        """
        ...

    async def reload_plugins(self) -> None:
        """Read the files of custom plugins again and go on with what they hold now; waiting pods are tried again.

        Raises:
            PluginError: one can't be loaded, and the old ones go on.
        """
        ...

    async def step_decision(self) -> bool:
        """Let one decision be taken although the clock stands still; False where nothing will ever be due."""
        ...

    async def step_event(self) -> bool:
        """Go to the next instant at which something is due, and let all happen that happens then; False where there is none."""
        ...

    def snapshots(self) -> Sequence[NamedSnapshot]:
        """Return the moments that are kept, the oldest first."""
        ...

    def take_snapshot(self, name: str) -> None:
        """Keep the cluster as it is now; InputError where the name is taken."""
        ...

    def restore_snapshot(self, name: str) -> None:
        """Go back; InputError where there is no such snapshot."""
        ...

    def delete_snapshot(self, name: str) -> None:
        """Forget one; InputError where there is no such snapshot."""
        ...

    def reset(self) -> None:
        """Go back to the cluster as it was when the server was ready."""
        ...
