"""Assembles simulations from options: combines files, configuration, plugins, engine, cluster and simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from bayplan.app.custom_plugins import CustomPlugin, reported_plugin_errors
from bayplan.app.mode import Mode
from bayplan.app.option_values import convert_options
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.base.errors import InputError
from bayplan.base.garbage_collector import rare_collections
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.kubelet import KubeletOptions, PodRun
from bayplan.controllers.revisions import unknown_revisions
from bayplan.descheduling import DEFAULT_INTERVAL_NS
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.records import RecordLevel
from bayplan.extender.connections import ExtenderConnections
from bayplan.formats.inputs import Inputs, LoadProgress, load_inputs
from bayplan.formats.manifest import LoadWarning, Manifest, WarningKind
from bayplan.objects.workloads import DaemonSet
from bayplan.sim import arrivals
from bayplan.sim.pod_count import DEFAULT_MAX_PODS, check_pod_count
from bayplan.sim.progress import Progress
from bayplan.sim.result import InputSummary, SimulationResult, WallClock
from bayplan.sim.simulator import Simulator
from bayplan.sim.traced_queue import TracedQueue
from bayplan.sim.virtual_cluster import ClusterOptions, VirtualCluster
from bayplan.workloads.shape import WorkloadShape, read_shape, shaped_inputs

if TYPE_CHECKING:
    from bayplan.autoscaling.autoscaler import ClusterAutoscaler
    from bayplan.autoscaling.configuration import AutoscalerConfiguration
    from bayplan.descheduling.descheduler import Descheduler
    from bayplan.descheduling.policy import Policy


class SimulationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a simulation.

    Attributes:
        paths: the manifests and traces, see `bayplan.formats.inputs.load_inputs`.
        mode: the scheduler that decides: current or classic.
        config: a KubeSchedulerConfiguration; None for the default one. In classic mode a Policy.
        algorithm_provider: the algorithm provider in classic mode, instead of a Policy; "" for the default provider.
        feature_gates: the feature gates, as for kube-scheduler: ``A=true,B=false``.
        plugins: the custom plugins, see `bayplan.app.custom_plugins.load_custom_plugins`.
        seed: the seed of all random streams.
        record_level: the detail of recorded decisions.
        until_ns: the end of the run, in nanoseconds since its start; None to end when the cluster is idle.
        max_pods: the maximum number of pods that the manifests may create.
        creation_times: whether to create objects of manifests at their creationTimestamp instead of at the start;
            workloads are created with their last pod, so that they don't create these pods again.
        start_delay_ns, termination_time_ns: see `bayplan.cluster.kubelet.KubeletOptions`.
        timeline: whether to record each pod's path through the scheduling queue, which then has all of upstream's
            timers.
        workload: a Workload file (`bayplan.workloads`) that shapes the trace; None for none.
        autoscaler: an Autoscaler file (`bayplan.autoscaling`); None for a fixed set of nodes.
        descheduler: a DeschedulerPolicy (`bayplan.descheduling`) that runs every `descheduling_interval_ns`; None for
            none.
        strict: whether to treat warnings as errors.
        check: whether to check all invariants after every event.
    """

    paths: Sequence[str]
    mode: Mode = Mode.CURRENT
    config: Path | None = None
    algorithm_provider: str = ""
    feature_gates: str = ""
    plugins: Sequence[str] = ()
    seed: int = 0
    record_level: RecordLevel = RecordLevel.SUMMARY
    until_ns: int | None = None
    max_pods: int = DEFAULT_MAX_PODS
    creation_times: bool = False
    start_delay_ns: int = 0
    termination_time_ns: int = 0
    timeline: bool = False
    workload: Path | None = None
    autoscaler: Path | None = None
    descheduler: Path | None = None
    descheduling_interval_ns: int = DEFAULT_INTERVAL_NS
    strict: bool = False
    check: bool = False

    def __post_init__(self) -> None:
        """Convert values of similar types, such as paths as strings.

        Raises:
            InputError: a value has a wrong type.
        """
        convert_options(self)


class RunFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a simulation other than input and configuration, after reading; None if not given.

    Attributes:
        workload, autoscaler, descheduler: see `SimulationOptions`.
    """

    workload: WorkloadShape | None = None
    autoscaler: AutoscalerConfiguration | None = None
    descheduler: Policy | None = None


def read_run_files(*, workload: Path | None, autoscaler: Path | None, descheduler: Path | None) -> RunFiles:
    """Read the files of a simulation; see `SimulationOptions`.

    Raises:
        InputError: a file can't be read.
    """
    return RunFiles(
        workload=None if workload is None else read_shape(workload),
        autoscaler=None if autoscaler is None else _read_autoscaler(autoscaler),
        descheduler=None if descheduler is None else _read_policy(descheduler),
    )


# Most simulations have neither an autoscaler nor a descheduler, so their modules are imported only here.


def _read_autoscaler(path: Path) -> AutoscalerConfiguration:
    from bayplan.autoscaling.configuration import read_autoscaler

    return read_autoscaler(path)


def _read_policy(path: Path) -> Policy:
    from bayplan.descheduling.policy import read_policy

    return read_policy(path)


def _add_autoscaler(
    configuration: AutoscalerConfiguration, simulator: Simulator, setup: SchedulerSetup
) -> ClusterAutoscaler:
    from bayplan.autoscaling.autoscaler import ClusterAutoscaler

    autoscaler = ClusterAutoscaler(configuration, simulator, lambda: setup)
    simulator.agents.add(autoscaler)
    return autoscaler


def _add_descheduler(policy: Policy, interval_ns: int, simulator: Simulator, setup: SchedulerSetup) -> Descheduler:
    from bayplan.descheduling.descheduler import Descheduler

    descheduler = Descheduler(policy, interval_ns, simulator, lambda: setup)
    simulator.agents.add(descheduler)
    return descheduler


class PreparedSimulation(msgspec.Struct):
    """A simulation that is ready to run.

    Attributes:
        options: the options that it was assembled from.
        simulator: the simulator, with all future events.
        given: a summary of the input.
        custom_plugins: the enabled custom plugins.
        load_seconds: the duration of loading, in real time.
        autoscaler, descheduler: the autoscaler and descheduler of the options; None for none.
        connections: the connections to the extenders of the configuration; closed after the run.
    """

    options: SimulationOptions
    simulator: Simulator
    given: InputSummary
    custom_plugins: Sequence[CustomPlugin]
    load_seconds: float
    connections: ExtenderConnections
    autoscaler: ClusterAutoscaler | None = None
    descheduler: Descheduler | None = None

    def run(self, progress: Callable[[Progress], None] | None = None) -> SimulationResult:
        """Run the simulation and return its result.

        Raises:
            PluginError: a custom plugin raised an exception.
            InputError: an annotation with a pod's run time is invalid.
        """
        start = perf_counter()
        simulator, until_ns = self.simulator, self.options.until_ns
        with reported_plugin_errors(self.custom_plugins), rare_collections(), self.connections:
            simulator.run(until_ns=None if until_ns is None else simulator.start_ns + until_ns, progress=progress)
        result = simulator.result(self.given)
        if self.autoscaler is not None:
            result.scaling = self.autoscaler.summary(result.nodes, result.end_ns)
        if self.descheduler is not None:
            result.descheduled = self.descheduler.evicted
        result.wall = WallClock(self.load_seconds, perf_counter() - start)
        return result


def simulate(
    options: SimulationOptions,
    *,
    stdin: BinaryIO | None = None,
    load_progress: LoadProgress | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> SimulationResult:
    """Read the input, run the simulation and return its result.

    Args:
        options: see `SimulationOptions`.
        stdin: the input of the path ``-``.
        load_progress: the function to call as documents are read.
        progress: the function to call as virtual time advances.

    Raises:
        InputError: the input, the configuration or a plugin is invalid.
    """
    check_options(options)
    return prepare_simulation(options, stdin=stdin, load_progress=load_progress).run(progress)


def check_options(options: object) -> None:
    """Raise an error with a suggestion if the value is not a `SimulationOptions`.

    Raises:
        InputError: it is a path or another value.
    """
    if not isinstance(options, SimulationOptions):
        shown = repr(options) if isinstance(options, str) else "..."
        got, hint = f"{type(options).__name__} {options!r:.60}", f"SimulationOptions(paths=[{shown}])"
        raise InputError("simulate(options)", got=got, wanted="SimulationOptions", hint=hint)


def prepare_simulation(
    options: SimulationOptions,
    *,
    stdin: BinaryIO | None = None,
    load_progress: LoadProgress | None = None,
    inputs: Inputs | None = None,
    setup: SchedulerSetup | None = None,
    files: RunFiles | None = None,
) -> PreparedSimulation:
    """Assemble a simulation; see `simulate`.

    Pass `inputs`, `setup` and `files` if they have already been read from the options.
    """
    start = perf_counter()
    # Read the scheduler's configuration before any large input, so that errors in it are reported at once.
    setup = setup or read_setup(
        SchedulerOptions(
            mode=options.mode,
            config=options.config,
            algorithm_provider=options.algorithm_provider,
            feature_gates=options.feature_gates,
            plugins=options.plugins,
        )
    )
    files = files or read_run_files(
        workload=options.workload, autoscaler=options.autoscaler, descheduler=options.descheduler
    )
    # Virtual time starts at the end of the input, so that existing objects are in the past.
    inputs = inputs or load_inputs(options.paths, stdin=stdin, strict=options.strict, progress=load_progress)
    inputs = shaped_inputs(inputs, files.workload, options.seed, what="--workload")
    check_pod_count(inputs.manifest.objects(), options.max_pods, hint="--max-pods {}")
    start_ns = arrivals.start_time_ns(inputs.manifest, creation_times=options.creation_times)
    runs = arrivals.run_times(inputs.trace)
    # Scheduler and cluster draw from separate streams, so that neither affects the numbers of the other.
    with reported_plugin_errors(setup.custom_plugins):
        scheduler = setup.make(
            seed=options.seed,
            start_ns=start_ns,
            record_level=options.record_level,
            queue_type=TracedQueue if options.timeline else EventDrivenQueue,
        )
    cluster = VirtualCluster(RandomStreams(options.seed), ClusterOptions(kubelet=_kubelet(options, runs)))
    simulator = Simulator(
        scheduler, cluster, seed=options.seed, start_ns=start_ns, check=options.check, strict=options.strict
    )
    for time_ns, operation in arrivals.operations(inputs, start_ns, creation_times=options.creation_times):
        simulator.at(time_ns, operation)
    autoscaler = None
    if files.autoscaler is not None:
        autoscaler = _add_autoscaler(files.autoscaler, simulator, setup)
    descheduler = None
    if files.descheduler is not None:
        descheduler = _add_descheduler(files.descheduler, options.descheduling_interval_ns, simulator, setup)
    seconds = perf_counter() - start
    given = _summary(inputs)
    return PreparedSimulation(
        options, simulator, given, setup.custom_plugins, seconds, setup.connections, autoscaler, descheduler
    )


def _kubelet(options: SimulationOptions, runs: dict[str, PodRun]) -> KubeletOptions:
    return KubeletOptions(
        start_delay_ns=options.start_delay_ns,
        termination_time_ns=options.termination_time_ns,
        run_of=(lambda pod: runs.get(pod.key)) if runs else None,
    )


def _summary(inputs: Inputs) -> InputSummary:
    manifest, trace = inputs.manifest, inputs.trace
    objects = dict(manifest.counts())
    unused: dict[str, int] = {}
    for item in manifest.unused:
        name = f"{item.api_version} {item.kind}"
        unused[name] = unused.get(name, 0) + 1
    if trace is not None:
        for kind, count in (("Node", len(trace.nodes)), ("Pod", len(trace.pods))):
            if count:
                objects[kind] = objects.get(kind, 0) + count
    files = [*manifest.files, *(trace.files if trace is not None else ())]
    warnings = [*manifest.warnings, *_revision_notes(manifest), *(trace.warnings if trace is not None else ())]
    return InputSummary(files=files, objects=objects, unused=unused, warnings=warnings)


def _revision_notes(manifest: Manifest) -> list[LoadWarning]:
    """Return a note for each DaemonSet whose pods are replaced at the start."""
    sources = {id(each.typed): each.source for each in manifest.loaded if isinstance(each.typed, DaemonSet)}
    return [
        LoadWarning(
            kind=WarningKind.UNKNOWN_REVISION,
            where=str(sources[id(item)]),
            what=f"DaemonSet {item.key}",
            problem=problem,
        )
        for item, problem in unknown_revisions(manifest.of(DaemonSet), manifest.pods)
    ]
