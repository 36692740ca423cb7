"""The command ``simulate``: schedule manifests and traces in virtual time and print a report."""

from pathlib import Path
from typing import Annotated, TypeAlias

# NumPy comes first, while the stack is low: CPython allocates frames in blocks of 16 KiB. Below several other imports, the
# thousands of calls that build NumPy's type aliases cross the end of a block, and each crossing maps and unmaps memory.
import numpy  # noqa: F401
import typer

from bayplan.analysis.export import check_destination, export
from bayplan.analysis.report import print_report
from bayplan.analysis.run_facts import RunFacts, run_facts
from bayplan.analysis.scaling_text import agent_lines
from bayplan.analysis.timeline_text import print_timeline
from bayplan.app.mode import Mode
from bayplan.app.simulation import SimulationOptions
from bayplan.base.errors import InputError
from bayplan.base.long_durations import read_long_duration
from bayplan.cli.option_groups import with_groups
from bayplan.cli.simulation_options import (
    DEFAULT_TIMES,
    INPUT_HELP,
    AlgorithmProvider,
    Autoscaler,
    Config,
    CreationTimes,
    Descheduler,
    DeschedulingInterval,
    FeatureGates,
    Level,
    MaxPods,
    ModeOption,
    Plugins,
    PodTimes,
    PolicyConfigFile,
    Seed,
    Strict,
    Timeline,
    Until,
    Workload,
    configuration_file,
    parse_duration,
    run,
)
from bayplan.descheduling import DEFAULT_INTERVAL_NS
from bayplan.sim.pod_count import DEFAULT_MAX_PODS
from bayplan.sim.result import SimulationResult

Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Result directory for decisions and summary; replaces an older result. [default: none]"
    ),
]


@with_groups
def simulate(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help=INPUT_HELP)],
    mode: ModeOption = Mode.CURRENT,
    config: Config = None,
    policy_config_file: PolicyConfigFile = None,
    algorithm_provider: AlgorithmProvider = "",
    feature_gates: FeatureGates = "",
    plugin: Plugins = None,
    seed: Seed = 0,
    until: Until = "",
    max_pods: MaxPods = DEFAULT_MAX_PODS,
    creation_times: CreationTimes = False,
    pod_times: PodTimes = DEFAULT_TIMES,
    out: Out = None,
    records: Annotated[
        Level | None,
        typer.Option(help="Detail of recorded decisions. [default: full with --out, else summary]", show_default=False),
    ] = None,
    timeline: Timeline = False,
    workload: Workload = None,
    autoscaler: Autoscaler = None,
    descheduler: Descheduler = None,
    descheduling_interval: DeschedulingInterval = "",
    strict: Strict = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check the simulator's own consistency after every event (slow).")
    ] = False,
) -> None:
    """Schedule workloads in virtual time and print a report.

    All objects are created at the start. Controllers create the pods of workloads, pods run as long as their annotation
    bayplan.io/run-time says (for example 20m), and virtual time jumps from one event to the next. The run ends when nothing
    can change any more, or after one day if a CronJob, a descheduler or a plugin would keep it going forever; --until sets
    another end.

    Example: bayplan simulate $(bayplan example) --out result
    """
    if out is not None:
        check_destination(out)
    level = records or (Level.FULL if out is not None else Level.SUMMARY)
    options = SimulationOptions(
        paths=paths,
        mode=mode,
        config=configuration_file(mode, config, policy_config_file),
        algorithm_provider=algorithm_provider,
        feature_gates=feature_gates,
        plugins=plugin or (),
        seed=seed,
        record_level=level.record_level,
        until_ns=parse_duration(until) if until else None,
        max_pods=max_pods,
        creation_times=creation_times,
        start_delay_ns=pod_times.start_delay_ns,
        termination_time_ns=pod_times.termination_time_ns,
        timeline=timeline,
        workload=workload,
        autoscaler=autoscaler,
        descheduler=descheduler,
        descheduling_interval_ns=_interval(descheduling_interval, descheduler),
        strict=strict,
        check=check,
    )
    result = run(options)
    facts = run_facts(result)
    try:
        # Write the directory first: printing ends at once if the reader of a pipe, such as head, does.
        if out is not None:
            export(result, out, facts=facts)
    finally:
        _print(result, facts, timeline=timeline)


def _print(result: SimulationResult, facts: RunFacts, *, timeline: bool) -> None:
    print_report(result, facts=facts)
    for line in agent_lines(result):
        print(line)
    if timeline:
        print_timeline(result)


def _interval(text: str, descheduler: Path | None) -> int:
    if not text:
        return DEFAULT_INTERVAL_NS
    if not descheduler:
        wanted = "a policy of the descheduler"
        raise InputError("--descheduling-interval", got="none", wanted=wanted, hint="--descheduler FILE")
    found = read_long_duration(text, what="--descheduling-interval")
    if not found:
        raise InputError("--descheduling-interval", got=repr(text), wanted="a duration above 0")
    return found
