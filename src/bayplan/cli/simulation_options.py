"""Options of the commands that run simulations."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.console import Console

from bayplan.analysis.units import format_duration
from bayplan.app.mode import Mode
from bayplan.app.simulation import SimulationOptions, prepare_simulation
from bayplan.base.errors import InputError
from bayplan.base.long_durations import read_long_duration
from bayplan.cli.option_groups import OptionGroup
from bayplan.engine.records import RecordLevel
from bayplan.formats.inputs import Inputs, LoadProgress
from bayplan.sim.progress import Progress as SimulatorProgress
from bayplan.sim.result import SimulationResult

INPUT_HELP = "Manifests, cluster dumps or traces (docs/traces.md): files, folders, patterns, or - (stdin)."


class Level(StrEnum):
    """The detail of recorded decisions, as a command-line option."""

    OFF = "off"
    SUMMARY = "summary"
    FULL = "full"

    @property
    def record_level(self) -> RecordLevel:
        """The same level as the engine's type."""
        return RecordLevel[self.name]


ModeOption: TypeAlias = Annotated[
    Mode, typer.Option("--mode", help="Scheduler version: current (v1.36) or classic (v1.16).")
]
Config: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="KubeSchedulerConfiguration, or Policy in classic mode. [default: kube-scheduler's defaults]",
    ),
]
SourceConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="KubeSchedulerConfiguration, or Policy in classic mode. [default: the source's]"),
]
PolicyConfigFile: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Policy file for classic mode; alias of --config. [default: none]")
]
AlgorithmProvider: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Classic mode: DefaultProvider or ClusterAutoscalerProvider. [default: DefaultProvider]"
    ),
]
FeatureGates: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="A=true,B=false", help="Feature gates, as for kube-scheduler. [default: those of the release]"
    ),
]
SourceFeatureGates: TypeAlias = Annotated[
    str,
    typer.Option(metavar="A=true,B=false", help="Feature gates, as for kube-scheduler. [default: the source's]"),
]
Plugins: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="PLUGIN",
        help="Plugin for every profile: FILE.py:CLASS or installed name, optionally =WEIGHT; repeatable. [default: none]",
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option(metavar="N", help="Seed for tie-breaking and generated names.")]
Until: TypeAlias = Annotated[
    str,
    typer.Option(metavar="DURATION", help="Virtual time to simulate: 90s, 1h30m, 7d. [default: until nothing changes]"),
]
StartDelay: TypeAlias = Annotated[str, typer.Option(metavar="DURATION", help="Time from a pod's binding to its start.")]
TerminationTime: TypeAlias = Annotated[
    str,
    typer.Option(metavar="DURATION", help="Duration of terminations, at most the grace period."),
]


class PodTimes(OptionGroup, frozen=True):
    """The times that pods take to start and to end, as durations."""

    start_delay: StartDelay = "0s"
    termination_time: TerminationTime = "0s"

    @property
    def start_delay_ns(self) -> int:
        """The start delay in nanoseconds.

        Raises:
            InputError: it is not a duration.
        """
        return parse_duration(self.start_delay, "--start-delay")

    @property
    def termination_time_ns(self) -> int:
        """The termination time in nanoseconds.

        Raises:
            InputError: it is not a duration.
        """
        return parse_duration(self.termination_time, "--termination-time")


DEFAULT_TIMES = PodTimes()

MaxPods: TypeAlias = Annotated[
    int,
    typer.Option(
        metavar="N", help="Refuse input whose workloads have more pods. [default: 500,000]", show_default=False
    ),
]
CreationTimes: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--creation-times", help="Create objects at their creationTimestamp, but workloads with their last pod."
    ),
]
Timeline: TypeAlias = Annotated[
    bool, typer.Option("--timeline", help="Print each pod's path through the scheduling queue, to the nanosecond.")
]
Workload: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Workload file: changes to arrivals, run times and load (docs/workloads.md). [default: none]",
    ),
]
Autoscaler: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Node groups of a cluster autoscaler (docs/autoscaling.md). [default: none]"),
]
Descheduler: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="DeschedulerPolicy for evicting badly placed pods (docs/descheduling.md). [default: none]"
    ),
]
DeschedulingInterval: TypeAlias = Annotated[
    str, typer.Option(metavar="DURATION", help="Time between two runs of the descheduler. [default: 5m]")
]
Strict: TypeAlias = Annotated[bool, typer.Option("--strict", help="Treat warnings about the input as errors.")]


def parse_duration(text: str, option: str = "--until") -> int:
    """Return the duration of an option in nanoseconds; see `read_long_duration`."""
    return read_long_duration(text, what=option)


def configuration_file(mode: Mode, config: Path | None, policy: Path | None) -> Path | None:
    """Return the scheduler's configuration file, or None; either option names it.

    Raises:
        InputError: both options are given, or a Policy without classic mode.
    """
    if policy is None:
        return config
    if config is not None:
        raise InputError("--policy-config-file", got=f"{policy} and --config {config}", wanted="only one of them")
    if mode is not Mode.CLASSIC:
        raise InputError("--policy-config-file needs --mode classic")
    return policy


def run(options: SimulationOptions, inputs: Inputs | None = None) -> SimulationResult:
    """Run a simulation, with a progress bar if standard error is a terminal; `inputs`: the input if already read."""
    with _progress_bar() as (loaded, simulated):
        prepared = prepare_simulation(options, stdin=sys.stdin.buffer, load_progress=loaded, inputs=inputs)
        return prepared.run(simulated)


@contextmanager
def _progress_bar() -> Iterator[tuple[LoadProgress | None, Callable[[SimulatorProgress], None] | None]]:
    """Yield functions that update a progress bar while loading and simulating; yield None if there is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None, None
        return
    # Imported here, because only the progress bar needs it.
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        start_ns: int | None = None

        def loaded(file: str, documents: int) -> None:
            bar.update(task, description=f"{Path(file).name}: {documents:,} documents")

        def simulated(progress: SimulatorProgress) -> None:
            nonlocal start_ns
            start_ns = progress.now_ns if start_ns is None else start_ns
            done = progress.operations - progress.operations_left
            text = (
                f"{format_duration(progress.now_ns - start_ns)}, {progress.decisions:,} decisions, "
                f"{progress.waiting:,} pods pending"
            )
            bar.update(task, description=text, total=progress.operations, completed=done)

        yield loaded, simulated
