"""The command ``explain``: explain one pod of a stored result, or of input that is simulated first."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bayplan.analysis.explain import explain as explain_pod
from bayplan.analysis.explanation_text import render_explanation, render_pods
from bayplan.analysis.export import is_result
from bayplan.analysis.grouped_problems import group_warnings
from bayplan.analysis.pod_lookup import find_pods
from bayplan.analysis.report import SHOWN_WARNINGS, print_parts, report_console
from bayplan.analysis.run_source import RunSource, SimulationSource
from bayplan.analysis.waits import WAITING
from bayplan.app.mode import Mode
from bayplan.app.simulation import SimulationOptions
from bayplan.base.errors import InputError
from bayplan.cli.simulation_options import (
    AlgorithmProvider,
    Config,
    CreationTimes,
    FeatureGates,
    MaxPods,
    ModeOption,
    Plugins,
    PolicyConfigFile,
    Seed,
    Strict,
    Until,
    configuration_file,
    parse_duration,
    run,
)
from bayplan.engine.records import RecordLevel
from bayplan.sim.pod_count import DEFAULT_MAX_PODS
from bayplan.sim.result import PodTimeline, SimulationResult

BEST_NODES = 5
"""Nodes whose scores are compared, without --nodes."""


def explain(
    pod: Annotated[
        str,
        typer.Argument(
            metavar="POD",
            help="Pod (name, namespace/name or prefix), or workload (deployment/web, deployment/shop/web).",
        ),
    ],
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Result folder (simulate --out), or input files to simulate first."),
    ],
    attempt: Annotated[
        int | None, typer.Option(metavar="N", help="Attempt to show in full. [default: the last]")
    ] = None,
    node: Annotated[str, typer.Option(metavar="NAME", help="Node to follow through all plugins. [default: none]")] = "",
    nodes: Annotated[bool, typer.Option("--nodes", help="List all nodes instead of examples.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
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
    strict: Strict = False,
) -> None:
    """Show why a pod waits, or why it got its node.

    The verdict comes first, then all attempts. One attempt is shown in full: which nodes failed at which plugin and why, the
    best nodes with the scores of every plugin, the nodes with equal scores, and what made the chosen node win. If no node
    was found, changes that would help are listed. For a workload, its pods are listed.

    The options of simulate apply only if PATH is input.

    Example: bayplan explain shop/year-in-memory $(bayplan example)
    """
    options = SimulationOptions(
        paths=paths,
        mode=mode,
        config=configuration_file(mode, config, policy_config_file),
        algorithm_provider=algorithm_provider,
        feature_gates=feature_gates,
        plugins=plugin or (),
        seed=seed,
        record_level=RecordLevel.FULL,
        until_ns=parse_duration(until) if until else None,
        max_pods=max_pods,
        creation_times=creation_times,
        strict=strict,
    )
    source = _source(paths, options)
    lives = find_pods(pod, source.pods)
    console = report_console()
    if len({life.key for life in lives}) > 1:
        if as_json:
            _print_json([_pod_line(source, life) for life in lives])
        else:
            print_parts(console, render_pods(lives, [_waiting_message(source, life) for life in lives]))
        return
    found = explain_pod(source, lives, attempt=attempt, node=node, best=sys.maxsize if nodes else BEST_NODES)
    if as_json:
        _print_json(found.as_dict())
    else:
        print_parts(console, render_explanation(found, width=console.width, all_nodes=nodes))


def _source(paths: list[str], options: SimulationOptions) -> RunSource:
    """Return what is explained: a stored result, or a simulation that is run now with full records."""
    results = [path for path in paths if path != "-" and is_result(Path(path))]
    if not results:
        result = run(options)
        _print_warnings(result)
        return SimulationSource(result)
    if len(paths) > 1:
        got = f"{results[0]} and {len(paths) - 1} more"
        raise InputError("paths", got=got, wanted="one result directory, or input alone")
    defaults = SimulationOptions(paths=paths, record_level=RecordLevel.FULL)
    if options != defaults:
        raise InputError(
            "options of a simulation",
            where=paths[0],
            got="a result, which was simulated with its own",
            hint="without them",
        )
    # PyArrow takes a while to import, and input does not need it.
    from bayplan.analysis.result_directory import open_result

    return open_result(paths[0])


def _print_warnings(result: SimulationResult) -> None:
    """Print warnings about the input on standard error: what is explained may follow from a misspelt field."""
    found = [each for each in result.input.warnings if not each.kind.is_note]
    lines = group_warnings((each.where, each.what, each.problem, each.hint) for each in found).lines()
    for line in lines[:SHOWN_WARNINGS]:
        print(f"warning: {line}", file=sys.stderr)
    if len(lines) > SHOWN_WARNINGS:
        print(f"warning: and {len(lines) - SHOWN_WARNINGS:,} more", file=sys.stderr)


def _waiting_message(source: RunSource, pod: PodTimeline) -> str:
    return source.message_of(pod) if pod.fate in WAITING else ""


def _pod_line(source: RunSource, pod: PodTimeline) -> dict[str, object]:
    message = _waiting_message(source, pod)
    return {"pod": pod.key, "fate": pod.fate.value, "node": pod.node, "attempts": pod.attempts, "message": message}


def _print_json(value: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
