"""Read and run scenario files: the wiring of `bayplan test`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import msgspec
from msgspec.structs import replace

from bayplan.app.custom_plugins import reported_plugin_errors
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.app.waiting_explanation import why_waiting
from bayplan.autoscaling.autoscaler import ClusterAutoscaler
from bayplan.base.errors import InputError
from bayplan.base.garbage_collector import rare_collections
from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.kubelet import KubeletOptions
from bayplan.descheduling.descheduler import Descheduler
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.scenarios.checks import Facts
from bayplan.scenarios.loading import FoundScenario, find_scenarios
from bayplan.scenarios.reading import ScenarioPlan, StepPlan
from bayplan.scenarios.runner import Outcome, ScenarioResult, StepResult, run_scenario
from bayplan.sim import arrivals
from bayplan.sim.pod_count import DEFAULT_MAX_PODS, check_pod_count
from bayplan.sim.scaling import ScalingSummary
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import ClusterOptions, VirtualCluster


class ScenarioOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `bayplan test`.

    Attributes:
        paths: the scenario files, folders or patterns.
        only: the text that the names of scenarios must contain; "" for all.
        label: the label that workloads of scheduler_perf must have; "" for all scenarios.
        seed: the seed to use instead of the scenarios' own seeds; None for their own.
        check: whether to check all invariants after every event.
    """

    paths: Sequence[str]
    only: str = ""
    label: str = ""
    seed: int | None = None
    check: bool = False


def run_scenarios(options: ScenarioOptions) -> Iterator[ScenarioResult]:
    """Run the scenarios of files one after the other, and yield their results; all files are read before the first run.

    Raises:
        InputError: a file is not a scenario or has an error, or a configuration or plugin is invalid.
    """
    chosen = [
        each
        for each in find_scenarios(options.paths)
        if options.only in each.name and (not options.label or options.label in each.labels)
    ]
    prepared = {number: PreparedScenario(each.read, options) for number, each in enumerate(chosen) if each.read}
    for number, each in enumerate(chosen):
        ready = prepared.pop(number, None)
        yield ready.run() if ready is not None else _run_made(each, options)


def _run_made(found: FoundScenario, options: ScenarioOptions) -> ScenarioResult:
    """Prepare and run a scenario. An error in it becomes its result, so that the other scenarios still run."""
    try:
        return PreparedScenario(found.make(), options).run()
    except InputError as problem:
        step = StepResult(
            number=1, name="read", where=found.where, action="", outcome=Outcome.BROKEN, problem=str(problem)
        )
        return ScenarioResult(
            name=found.name, file=found.where.rpartition(":")[0], steps=[step], duration_ns=0, decisions=0, digest=""
        )


class PreparedScenario:
    """A scenario with its configurations and its initial cluster.

    Args:
        plan: the scenario.
        options: see `ScenarioOptions`.

    Raises:
        InputError: a configuration or a plugin is invalid.
    """

    def __init__(self, plan: ScenarioPlan, options: ScenarioOptions) -> None:
        self.plan = plan
        scenario = plan.scenario
        self._seed = scenario.seed if options.seed is None else options.seed
        self._plugins = [_plugin_path(text, plan.folder) for text in scenario.plugins]
        self._setup = self._read_setup(None if scenario.config is None else plan.folder / scenario.config)
        self._setups = {step.number: self._read_step(step) for step in plan.steps if step.step.configure is not None}
        inputs = plan.inputs
        check_pod_count(inputs.manifest.objects(), DEFAULT_MAX_PODS)
        start_ns = arrivals.start_time_ns(inputs.manifest)
        runs = arrivals.run_times(inputs.trace)
        kubelet = KubeletOptions(run_of=(lambda pod: runs.get(pod.key)) if runs else None)
        cluster = VirtualCluster(RandomStreams(self._seed), ClusterOptions(kubelet=kubelet))
        scheduler = self._make(self._setup, start_ns)
        self.simulator = Simulator(scheduler, cluster, seed=self._seed, start_ns=start_ns, check=options.check)
        for time_ns, operation in arrivals.operations(inputs, start_ns):
            self.simulator.at(time_ns, operation)
        self._autoscaler: ClusterAutoscaler | None = None
        if plan.autoscaler is not None:
            self._autoscaler = ClusterAutoscaler(plan.autoscaler, self.simulator, lambda: self._setup)
            self.simulator.agents.add(self._autoscaler)
        if plan.descheduler is not None:
            interval_ns = plan.descheduling_interval_ns
            descheduler = Descheduler(plan.descheduler, interval_ns, self.simulator, lambda: self._setup)
            self.simulator.agents.add(descheduler)

    def run(self) -> ScenarioResult:
        """Run the scenario and return its result."""
        begun = perf_counter()
        with reported_plugin_errors(self._setup.custom_plugins), rare_collections():
            result = run_scenario(self.plan, self.simulator, self._configure, Facts(self._reason, self._costs))
        for setup in (self._setup, *self._setups.values()):
            setup.connections.close()
        return replace(result, seconds=perf_counter() - begun)

    # --- schedulers ---------------------------------------------------------------------------------------------------

    def _read_setup(self, config: Path | None, *, text: str = "", where: str = "") -> SchedulerSetup:
        gates = self.plan.scenario.feature_gates
        return read_setup(
            SchedulerOptions(config=config, feature_gates=gates, plugins=self._plugins, text=text, where=where)
        )

    def _read_step(self, step: StepPlan) -> SchedulerSetup:
        given = step.step.configure
        if isinstance(given, str):
            return self._read_setup(self.plan.folder / given)
        return self._read_setup(None, text=msgspec.json.encode(given).decode(), where=step.where)

    def _make(self, setup: SchedulerSetup, start_ns: int, before: Scheduler | None = None) -> Scheduler:
        return setup.make(
            seed=self._seed,
            start_ns=start_ns,
            record_level=RecordLevel.SUMMARY,
            state=None if before is None else before.state,
            queue_type=EventDrivenQueue,
        )

    def _configure(self, step: StepPlan, simulator: Simulator) -> Scheduler:
        self._setup = self._setups[step.number]
        return self._make(self._setup, simulator.now_ns, simulator.scheduler)

    def _costs(self) -> ScalingSummary | None:
        """Return the autoscaler's results so far, or None without an autoscaler."""
        if self._autoscaler is None:
            return None
        return self._autoscaler.summary(self.simulator.nodes, self.simulator.now_ns)

    def _reason(self, key: str) -> str:
        return why_waiting(self.simulator, self._setup, key)


def _plugin_path(text: str, folder: Path) -> str:
    """Return a value of ``--plugin`` with its file resolved in a scenario's folder. Installed plugins are unchanged."""
    return str(folder / text) if ".py" in text else text
