"""The interface of a running server that this API reads and controls.

`bayplan.app.simulator_server` implements it; tests implement smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from bayplan.answers.question_cluster import SchedulerFactory
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.store.store import Snapshot
from bayplan.base.clock import Clock
from bayplan.cluster.store import ChangeEvent, ObjectStore
from bayplan.engine.decision import Decision, Record
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.extender.connections import ExtenderConnections
from bayplan.framework.configuration.loading import Examination, SchedulerConfiguration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.registry import Registry
from bayplan.live.decision_store import LatePoints, PointResult
from bayplan.live.instrumented_queue import Origin
from bayplan.live.plugin_runner import PluginRunner

T = TypeVar("T")


class TypedObjects(Protocol):
    """The typed objects of the cluster, in sync with the API's store. Use on the event loop."""

    @property
    def store(self) -> ObjectStore:
        """The objects, read-only."""
        ...

    def listen(self, listener: Callable[[Sequence[ChangeEvent]], None]) -> None:
        """Call a function with all changes, on the event loop, in the order of revisions, starting with the existing objects."""
        ...


class Decisions(Protocol):
    """The decision records. For any thread."""

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
        """Why the result annotations of pods can't be read, by pod key."""
        ...

    def __len__(self) -> int:
        """Return the number of decisions so far, which will also be the number of the next one."""
        ...

    def __getitem__(self, number: int, /) -> Record:
        """Return a decision's summary record. Raise LookupError if it is no longer in memory."""
        ...

    def decision(self, number: int) -> Decision:
        """Return a decision's full record. Raise LookupError if it has none."""
        ...

    def origin(self, number: int) -> Origin | None:
        """Return the queue tier that a decision's pod came from, and the event that moved it; None if unknown."""
        ...

    def late_points(self, number: int) -> LatePoints | None:
        """Return the plugins from Reserve to Bind for a decision with a full record; None if unknown."""
        ...

    def late_results(self, number: int) -> Sequence[PointResult]:
        """Return the results of the plugins from Reserve to Bind, except plain successes, the oldest first."""
        ...

    def is_annotated(self, number: int) -> bool:
        """Return whether another scheduler made a decision, which was read from the pod's annotations."""
        ...

    def numbers_of(self, pod: str) -> Sequence[int]:
        """Return the numbers of the decisions in memory about pods with this key, ascending."""
        ...


class PluginFailure(Protocol):
    """A failure of a plugin: it raised an exception or took too long."""

    @property
    def plugin(self) -> str:
        """The name of the plugin."""
        ...

    @property
    def point(self) -> str:
        """The extension point, e.g. ``Filter``."""
        ...

    @property
    def exception(self) -> str:
        """The exception in one line."""
        ...

    @property
    def traceback(self) -> str:
        """The traceback of the exception."""
        ...

    @property
    def at_ns(self) -> int:
        """The time of the failure, by the clock."""
        ...


class EngineStatus(Protocol):
    """The status that the engine publishes, slightly delayed."""

    @property
    def decisions(self) -> int:
        """The number of decisions so far."""
        ...

    @property
    def decisions_per_second(self) -> float:
        """The decisions per second of wall-clock time, in recent seconds."""
        ...

    @property
    def p99_ms(self) -> float:
        """The 99th percentile of the duration of a cycle, in wall-clock milliseconds."""
        ...

    @property
    def queue(self) -> Mapping[str, int]:
        """The number of pods in each tier: active, backoff, unschedulable, gated."""
        ...

    @property
    def preemptions(self) -> int:
        """The number of cycles so far that preempted pods."""
        ...

    @property
    def binding_failures(self) -> int:
        """The number of bindings so far that the API refused."""
        ...

    @property
    def plugin_failures(self) -> Sequence[PluginFailure]:
        """The newest failures of plugins."""
        ...


class Engine(Protocol):
    """The scheduler on its thread."""

    def status(self) -> EngineStatus:
        """Return the published status, without waiting."""
        ...

    def call(self, question: Callable[[Scheduler], T], timeout: float) -> T:
        """Run a function on the engine's thread between two cycles. Raise EngineBusy if that takes longer than `timeout` s."""
        ...


class Setup(SchedulerFactory, Protocol):
    """The setup of the scheduler."""

    @property
    def configuration_text(self) -> str:
        """The configuration as given; "" for the default."""
        ...

    @property
    def configuration(self) -> SchedulerConfiguration:
        """The configuration with defaults applied."""
        ...

    @property
    def registry(self) -> Registry:
        """The available plugins."""
        ...

    @property
    def feature_gates(self) -> FeatureGates:
        """The feature gates, which change decisions."""
        ...

    @property
    def plugin_files(self) -> Mapping[str, str]:
        """The files of custom plugins, by plugin name."""
        ...

    @property
    def seed(self) -> int:
        """The seed for tie-breaking."""
        ...

    @property
    def runner(self) -> PluginRunner | None:
        """The runner of custom plugins."""
        ...

    @property
    def connections(self) -> ExtenderConnections:
        """The connections to the configured extenders."""
        ...

    def for_trial(
        self, configuration: SchedulerConfiguration, runner: PluginRunner, *, calls_extenders: bool = False
    ) -> Setup:
        """Return the setup with another configuration and runner; close its connections if it calls extenders."""
        ...

    def examine(self, text: str) -> Examination:
        """Run all checks on a configuration, with the feature gates and plugins of the server."""
        ...

    def default_configuration(self) -> SchedulerConfiguration:
        """Return the default configuration."""
        ...


class NamedSnapshot(Protocol):
    """A named snapshot of the cluster."""

    @property
    def name(self) -> str:
        """The name of the snapshot."""
        ...

    @property
    def taken_ns(self) -> int:
        """The time at which it was taken, by the clock."""
        ...

    @property
    def revision(self) -> int:
        """The revision of the API's store at that time."""
        ...

    @property
    def contents(self) -> Snapshot:
        """The documents in the snapshot."""
        ...


class ServerContext(Protocol):
    """A running server. Except for `decisions`, `clock` and `engine`, use it on the event loop."""

    @property
    def api(self) -> Api:
        """The Kubernetes API, in process."""
        ...

    @property
    def backend(self) -> Backend:
        """The backend of the Kubernetes API, with its store."""
        ...

    @property
    def bridge(self) -> TypedObjects:
        """The typed objects of the cluster."""
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
    def setup(self) -> Setup:
        """The setup of the scheduler."""
        ...

    @property
    def instance(self) -> str:
        """An ID that differs after each start of a server."""
        ...

    async def configure(self, text: str) -> None:
        """Apply another configuration, completely or not at all, and retry waiting pods.

        Raises:
            ConfigurationError: the configuration is invalid, and the current one stays in use.
        """
        ...

    async def reload_plugins(self) -> None:
        """Reload the files of custom plugins, use their new code, and retry waiting pods.

        Raises:
            PluginError: a file can't be loaded, and the current plugins stay in use.
        """
        ...

    async def step_decision(self) -> bool:
        """Make one decision while the clock is paused. Return False if nothing will ever be due."""
        ...

    async def step_event(self) -> bool:
        """Advance to the next time at which something is due, and run everything due then. Return False if there is none."""
        ...

    def snapshots(self) -> Sequence[NamedSnapshot]:
        """Return the snapshots, the oldest first."""
        ...

    def take_snapshot(self, name: str) -> None:
        """Take a snapshot of the cluster. Raise InputError if the name is in use."""
        ...

    def restore_snapshot(self, name: str) -> None:
        """Restore a snapshot. Raise InputError if it does not exist."""
        ...

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot. Raise InputError if it does not exist."""
        ...

    def reset(self) -> None:
        """Reset the cluster to its state when the server became ready."""
        ...
