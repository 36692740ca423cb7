"""The interface of a running server that the service reads and controls.

`bayplan.app.simulator_server` implements it; tests implement smaller ones.
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
from bayplan.live.decision_store import LatePoints, PointResult
from bayplan.live.instrumented_queue import Origin

T = TypeVar("T")


class TypedObjects(Protocol):
    """The typed objects of the cluster, in sync with the API's store. Read on the loop thread."""

    @property
    def store(self) -> ObjectStore:
        """The objects, read-only."""
        ...

    def listen(self, listener: Callable[[Sequence[ChangeEvent]], None]) -> None:
        """Call a function with every change, on the loop thread, in the order of revisions, starting with the existing objects."""
        ...


class Decisions(Protocol):
    """The decision records; any thread may read them."""

    @property
    def level(self) -> RecordLevel:
        """The record level."""
        ...

    @property
    def oldest(self) -> int:
        """The number of the oldest decision whose summary is in memory."""
        ...

    @property
    def oldest_full(self) -> int:
        """The number of the oldest decision whose full record may be in memory."""
        ...

    @property
    def annotation_problems(self) -> Mapping[str, str]:
        """Why the result annotations of a pod can't be read, by its key."""
        ...

    def __len__(self) -> int:
        """Return the number of decisions so far, which is also the number of the next one."""
        ...

    def __getitem__(self, number: int, /) -> Record:
        """Return a decision's summary; LookupError if it is no longer in memory."""
        ...

    def decision(self, number: int) -> Decision:
        """Return a full record; LookupError if it does not exist."""
        ...

    def origin(self, number: int) -> Origin | None:
        """Return the event that made a decision's pod ready; None if unknown."""
        ...

    def late_points(self, number: int) -> LatePoints | None:
        """Return the plugins that run after the choice of a node in a decision with a full record; None if they are not known."""
        ...

    def late_results(self, number: int) -> Sequence[PointResult]:
        """Return the results of these plugins, except plain success, the oldest first."""
        ...

    def is_annotated(self, number: int) -> bool:
        """Return whether a decision was made by another scheduler and read from the pod's annotations."""
        ...

    def numbers_of(self, pod: str) -> Sequence[int]:
        """Return the numbers of the decisions in memory about pods with this key, ascending."""
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
        """The exception, in one line."""
        ...

    @property
    def traceback(self) -> str:
        """The traceback."""
        ...

    @property
    def at_ns(self) -> int:
        """The time, by the clock."""
        ...


class EngineStatus(Protocol):
    """The status that the engine publishes, with little delay."""

    @property
    def decisions(self) -> int:
        """Decisions so far."""
        ...

    @property
    def decisions_per_second(self) -> float:
        """The decisions per second of real time, in recent seconds."""
        ...

    @property
    def p99_ms(self) -> float:
        """99th percentile of the duration of a cycle, in real time."""
        ...

    @property
    def queue(self) -> Mapping[str, int]:
        """Pods in each tier: active, backoff, unschedulable, gated."""
        ...

    @property
    def preemptions(self) -> int:
        """The number of cycles that preempted pods so far."""
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
        """Return the published status; never waits."""
        ...

    def ask(self, question: Callable[[Scheduler], T], timeout: float) -> T:
        """Run a function on the engine's thread between two cycles; EngineBusy if it gets no turn."""
        ...


class Settings(Protocol):
    """The settings of the scheduler."""

    @property
    def configuration_text(self) -> str:
        """The configuration as given; "" for the default."""
        ...

    @property
    def configuration(self) -> SchedulerConfiguration:
        """The effective configuration."""
        ...

    @property
    def registry(self) -> Registry:
        """The available plugins."""
        ...

    @property
    def feature_gates(self) -> FeatureGates:
        """Feature gates, which change decisions."""
        ...

    @property
    def plugin_files(self) -> Mapping[str, str]:
        """The files of custom plugins by the plugins' names."""
        ...

    @property
    def seed(self) -> int:
        """The seed for tie-breaking."""
        ...

    @property
    def assemble(self) -> Assemble:
        """The factory of a scheduler from a configuration."""
        ...

    def connect(self, configuration: SchedulerConfiguration) -> ExtenderConnections:
        """Return connections with the extenders of a configuration."""
        ...

    def examine(self, text: str) -> Examination:
        """Run all checks on a configuration, with the gates and plugins of the server."""
        ...

    def default_configuration(self) -> SchedulerConfiguration:
        """Return the configuration that is used if none is given."""
        ...


class NamedSnapshot(Protocol):
    """A named snapshot of the cluster."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def taken_ns(self) -> int:
        """The time, by the clock."""
        ...

    @property
    def revision(self) -> int:
        """The revision of the API's store."""
        ...

    @property
    def contents(self) -> Snapshot:
        """The documents in the snapshot."""
        ...


class Subject(Protocol):
    """A running server. Everything except `decisions`, `clock` and `engine` belongs to the loop thread."""

    @property
    def api(self) -> Api:
        """The Kubernetes API, in process."""
        ...

    @property
    def backend(self) -> Backend:
        """The backend with the documents."""
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
        """The decisions of the scheduler."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock that API, controllers, kubelet and scheduler share."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of the scheduler."""
        ...

    @property
    def instance(self) -> str:
        """A text that differs after each start of a server."""
        ...

    async def configure(self, text: str) -> None:
        """Switch to another configuration atomically; waiting pods are retried.

        Raises:
            ConfigurationError: it is rejected, and the current one stays in use.
        """
        ...

    async def reload_plugins(self) -> None:
        """Reload the files of custom plugins and use their new code; waiting pods are retried.

        Raises:
            PluginError: one can't be loaded, and the current plugins stay in use.
        """
        ...

    async def step_decision(self) -> bool:
        """Make one decision although the clock is paused; return False if nothing will ever be due."""
        ...

    async def step_event(self) -> bool:
        """Advance to the next time at which something is due, and run everything due then; return False if nothing is due."""
        ...

    def snapshots(self) -> Sequence[NamedSnapshot]:
        """Return the snapshots, the oldest first."""
        ...

    def take_snapshot(self, name: str) -> None:
        """Take a snapshot of the cluster; InputError if the name is taken."""
        ...

    def restore_snapshot(self, name: str) -> None:
        """Restore a snapshot; InputError if it does not exist."""
        ...

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot; InputError if it does not exist."""
        ...

    def reset(self) -> None:
        """Restore the cluster to its state when the server became ready."""
        ...
