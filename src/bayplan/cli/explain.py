"""The command ``explain``: explain one pod of a stored result, of a simulation, or of a cluster's current state."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple

import typer
from msgspec.structs import replace

from bayplan.analysis.explain import explain as explain_pod
from bayplan.analysis.explanation import Explanation
from bayplan.analysis.explanation_text import render_explanation
from bayplan.analysis.pod_lookup import find_pods
from bayplan.analysis.report import print_parts, report_console
from bayplan.analysis.run_source import RunSource, SimulationSource
from bayplan.analysis.waits import WAITING
from bayplan.answers.answer_text import assumed, columns
from bayplan.answers.current_source import CurrentSource
from bayplan.answers.explain_now import with_suggestions
from bayplan.answers.missing_replicas import missing_replicas
from bayplan.answers.score_errors import error_text
from bayplan.app.custom_plugins import reported_plugin_errors
from bayplan.app.mode import Mode
from bayplan.app.simulation import SimulationOptions
from bayplan.app.sources.cluster_source import DEFAULT_APPLIED_NS, ClusterSource, SourceKind, SourceOptions
from bayplan.app.sources.file_source import is_dump, open_files, read_setup_of, source_of
from bayplan.app.sources.opening import open_source, source_kind
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.base.errors import InputError, MissingPlugins
from bayplan.cli.option_groups import with_groups
from bayplan.cli.question_options import print_lines
from bayplan.cli.simulation_options import (
    AlgorithmProvider,
    CreationTimes,
    MaxPods,
    ModeOption,
    Plugins,
    PolicyConfigFile,
    Seed,
    SourceConfig,
    SourceFeatureGates,
    Strict,
    configuration_file,
    parse_duration,
    run,
)
from bayplan.cli.source_options import AsJson, LiveCluster, Sources, check_subject, print_json, print_warnings
from bayplan.engine.records import RecordLevel
from bayplan.formats.inputs import load_inputs
from bayplan.library import Cluster
from bayplan.sim.pod_count import DEFAULT_MAX_PODS
from bayplan.sim.result import PodTimeline

BEST_NODES = 5
"""Number of nodes whose scores are compared unless --nodes is given."""


@with_groups
def explain(
    pod: Annotated[
        str,
        typer.Argument(
            metavar="POD",
            help="Pod (name, namespace/name or prefix), or workload (deployment/web, deployment/shop/web).",
        ),
    ],
    sources: Sources = None,
    *,
    live: LiveCluster,
    attempt: Annotated[
        int | None, typer.Option(metavar="N", help="Show this attempt in full. [default: the last]")
    ] = None,
    node: Annotated[
        str, typer.Option(metavar="NAME", help="Show the result of every plugin for this node. [default: none]")
    ] = "",
    nodes: Annotated[bool, typer.Option("--nodes", help="List all nodes instead of examples.")] = False,
    as_json: AsJson = False,
    mode: ModeOption = Mode.CURRENT,
    config: SourceConfig = None,
    policy_config_file: PolicyConfigFile = None,
    algorithm_provider: AlgorithmProvider = "",
    feature_gates: SourceFeatureGates = "",
    plugin: Plugins = None,
    seed: Seed = 0,
    until: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Virtual time to simulate: 90s, 1h30m, 7d. [default: 1m; traces to their end]"
        ),
    ] = "",
    max_pods: MaxPods = DEFAULT_MAX_PODS,
    creation_times: CreationTimes = False,
    strict: Strict = False,
) -> None:
    """Show why a pod is pending, or why it got its node.

    The first line is the verdict: where the pod is, or why it is pending. Then come the attempts, one of them in full: which
    nodes failed at which plugin and why, the best nodes with the scores of every plugin, the nodes that tie, and the plugins that
    made the difference. If no node was found, changes that would help are listed, each tried in a copy of the cluster (bayplan
    unblock lists all). With --node, each filter that rejects the pod there is shown with the smallest change that lets it pass.
    For a workload, its pods are listed.

    Dumps, Bayplan servers and live clusters are explained in their current state; a pod with a node is scheduled again in a copy.
    Manifests that were never in a cluster are applied and simulated for a minute of virtual time, or up to --until. A dump is
    simulated only with --until or --creation-times; a trace is simulated to its end.

    Exit code: 0 whether the pod is pending or not, 2 on bad input.

    Example: bayplan explain shop/year-in-memory $(bayplan example)
    """
    options = SimulationOptions(
        paths=sources or (),
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
    shown = Shown(attempt=attempt, node=node, best=sys.maxsize if nodes else BEST_NODES)
    found = _Question(options, live).answer(pod, shown)
    _print(found, as_json=as_json, all_nodes=nodes)


def _print(found: Explanation | Workload, *, as_json: bool, all_nodes: bool) -> None:
    """Print an explanation, or the pods of a workload."""
    console = report_console()
    if isinstance(found, Explanation):
        if as_json:
            print_json(found.as_dict())
        else:
            print_parts(console, render_explanation(found, width=console.width, all_nodes=all_nodes))
    elif as_json:
        pods = [_pod_line(found.source, life) for life in found.lives]
        shown = {"pods": pods, "missing": found.missing, "verdicts": found.verdicts, "assumptions": found.assumptions}
        print_json(shown)
    else:
        print_lines(_workload_lines(found))


def _workload_lines(found: Workload) -> list[str]:
    """Return the pods of a workload as lines of text: the verdict, then the pods, pending ones first."""
    if not found.lives:
        return [f"{found.missing}.", *assumed(found.assumptions)]
    waiting = [life for life in found.lives if life.fate in WAITING]
    placed = sum(bool(life.node) for life in found.lives)
    verdict = f"{placed:,} of {format_count(len(found.lives), 'pod')} {'has' if placed == 1 else 'have'} a node"
    if waiting:
        verdict = f"{verdict}, {len(waiting):,} {is_or_are(len(waiting))} pending"
    lines = [*([f"{found.missing}."] if found.missing else []), f"{verdict}.", *found.verdicts]
    ordered = sorted(found.lives, key=lambda life: life.fate not in WAITING)
    rows = [(life.key, life.fate.value, life.node or "-") for life in ordered]
    lines += ["", *columns(("POD", "STATE", "NODE"), rows, everything=True)]
    counts = Counter(text for life in waiting if (text := _waiting_message(found.source, life)))
    if counts:
        lines += [
            "",
            "Why they are pending",
            *(f"  {count:,} of them: {message}" for message, count in counts.most_common()),
        ]
    return [*lines, *assumed(found.assumptions)]


class Shown(NamedTuple):
    """The parts of an explanation to show: an attempt, a node, and the number of best nodes."""

    attempt: int | None
    node: str
    best: int


class Workload(NamedTuple):
    """The pods of a workload.

    Attributes:
        source: the source of the pods; None if there are none.
        lives: the timelines of its pods.
        missing: why replicas do not exist, "" if all do.
        verdicts: the verdict about its first pending pod, if any.
        assumptions: the assumptions of the verdict.
    """

    source: RunSource | None
    lives: list[PodTimeline]
    missing: str
    verdicts: list[str]
    assumptions: list[str]


class _Question:
    """Reads the source that the command names, and explains a pod in it."""

    def __init__(self, options: SimulationOptions, live: LiveCluster) -> None:
        self._options = options
        self._source = SourceOptions(
            paths=options.paths,
            context=live.context,
            kubeconfig=live.kubeconfig,
            mode=options.mode,
            config=options.config,
            algorithm_provider=options.algorithm_provider,
            feature_gates=options.feature_gates,
            plugins=options.plugins,
            seed=options.seed,
            max_pods=options.max_pods,
            strict=options.strict,
        )

    def answer(self, pod: str, shown: Shown) -> Explanation | Workload:
        """Return the explanation of a pod, or the pods of a workload."""
        check_subject("POD", pod, self._source)
        kind = source_kind(self._source)
        if kind is SourceKind.RESULT:
            return self._of_result(pod, shown)
        if kind is not None:
            return self._of_present(pod, shown, open_source(self._source))
        options = self._options
        inputs = load_inputs(options.paths, stdin=sys.stdin.buffer, strict=options.strict)
        if is_dump(inputs) and options.until_ns is None and not options.creation_times:
            print_warnings(inputs.manifest.warnings)
            return self._of_present(pod, shown, open_files(self._source, inputs=inputs))
        if inputs.trace is None and options.until_ns is None and not options.creation_times:
            # Simulate to the same state as the other commands that ask about manifests.
            options = replace(options, until_ns=DEFAULT_APPLIED_NS)
        result = run(options, inputs)
        print_warnings(result.input.warnings)
        return self._of_run(pod, shown, SimulationSource(result), lambda: source_of(result, self._source))

    def _of_result(self, pod: str, shown: Shown) -> Explanation | Workload:
        """Explain a pod of a stored result; the scheduler's options are used to try changes that would help."""
        options, path = self._options, self._options.paths[0]
        of_simulation = {
            "--until": options.until_ns is not None,
            "--creation-times": options.creation_times,
            "--max-pods": options.max_pods != DEFAULT_MAX_PODS,
        }
        given = [name for name, is_given in of_simulation.items() if is_given]
        if given:
            what = (
                f"{', '.join(given)}: a result directory is a finished simulation, to which these options don't apply"
            )
            raise InputError(what, where=path, hint="without them")
        # Imported here, because PyArrow takes a while to import, and other sources do not need it.
        from bayplan.analysis.result_directory import open_result
        from bayplan.app.sources.result_source import result_source

        result = open_result(path)
        setup = read_setup_of(self._source)
        with reported_plugin_errors(setup.custom_plugins):
            return self._of_run(pod, shown, result, lambda: result_source(result, setup, self._source))

    def _of_run(
        self, pod: str, shown: Shown, source: RunSource, end: Callable[[], ClusterSource]
    ) -> Explanation | Workload:
        """Explain a pod of a run; changes that would help a pending pod are tried on the cluster that `end` returns."""
        try:
            lives = find_pods(pod, source.pods)
        except InputError as problem:
            try:
                present = end()
            except MissingPlugins:
                raise problem from None
            return _without_pods(pod, source, Cluster.of(present, seed=self._options.seed), problem)
        is_single = len({life.key for life in lives}) == 1
        if not is_single or not _names_pod(pod, lives[-1].key, shown):
            missing, assumptions = self._missing_at_end(pod, end)
            if not is_single or missing:
                return Workload(source, lives, missing, [], assumptions)
        explained = partial(explain_pod, source, attempt=shown.attempt, node=shown.node, best=shown.best)
        last = lives[-1]
        if last.fate not in WAITING or last.pod is None or shown.attempt is not None:
            return explained(lives)
        try:
            present = end()
        except MissingPlugins as problem:
            found = explained(lives)
            names = ", ".join(problem.plugins)
            note = f"no changes were tried: the run had {names}, and a result has no plugins ({problem.options})"
            return replace(found, notes=[*found.notes, note])
        cluster = Cluster.of(present, seed=self._options.seed, record_level=RecordLevel.OFF)
        waiting = cluster.scheduler.pods.get(last.key)
        if waiting is None:
            return replace(explained(lives), assumptions=cluster.assumptions)
        trial = cluster.trial()
        # The recorded message of an invalid score does not name the node.
        lives = [*lives[:-1], replace(last, message=error_text(trial, waiting, last.message))]
        found = replace(explained(lives), assumptions=cluster.assumptions)
        return with_suggestions(found, trial, waiting, shown.node)

    def _missing_at_end(self, workload: str, end: Callable[[], ClusterSource]) -> tuple[str, list[str]]:
        """Return why replicas of a workload are missing at the end of a run, and the assumptions; "" and [] if none is."""
        try:
            present = Cluster.of(end(), seed=self._options.seed, record_level=RecordLevel.OFF)
        except MissingPlugins:
            return "", []
        missing = missing_replicas(workload, present.questions())
        return missing, present.assumptions if missing else []

    def _of_present(self, pod: str, shown: Shown, source: ClusterSource) -> Explanation | Workload:
        """Explain a pod of a cluster in its current state."""
        with reported_plugin_errors(source.scheduler.custom_plugins):
            return self._of_cluster(pod, shown, source)

    def _of_cluster(self, pod: str, shown: Shown, source: ClusterSource) -> Explanation | Workload:
        if shown.attempt is not None:
            got = f"{source.kind} (without stored attempts)"
            raise InputError("--attempt", got=got, wanted="a result directory, or manifests to simulate")
        cluster = Cluster.of(source, seed=self._options.seed, record_level=RecordLevel.OFF)
        pods = cluster.timelines()
        try:
            lives = cluster.find(pod)
        except InputError as problem:
            return _without_pods(pod, None, cluster, problem)
        key, is_single = lives[-1].key, len({life.key for life in lives}) == 1
        is_pod = is_single and _names_pod(pod, key, shown)
        missing = "" if is_pod else missing_replicas(pod, cluster.questions())
        if is_single and not missing:
            return cluster.explain(key, node=shown.node, best=shown.best)
        waiting = [life for life in lives if life.fate in WAITING]
        verdicts = [cluster.explain(waiting[0].key, node=shown.node).verdict] if waiting else []
        present = CurrentSource(cluster.trial(), pods, lives[0], source.now_ns)
        return Workload(present, lives, missing, verdicts, cluster.assumptions)


def _names_pod(text: str, key: str, shown: Shown) -> bool:
    """Return whether a text that matches the pod with this key names the pod itself rather than its workload.

    With a node or an attempt, the question is about the pod.
    """
    is_detail = bool(shown.node) or shown.attempt is not None
    return is_detail or key.startswith(text) or key.rpartition("/")[2].startswith(text)


def _without_pods(name: str, source: RunSource | None, cluster: Cluster, problem: InputError) -> Workload:
    """Return a workload none of whose replicas exist.

    Raises:
        InputError: there is no such workload: the given error.
    """
    missing = missing_replicas(name, cluster.questions(), only_if_all=True)
    if not missing:
        raise (cluster.source.refusal(name) if cluster.source is not None else None) or problem
    return Workload(source, [], missing, [], cluster.assumptions)


def _waiting_message(source: RunSource | None, pod: PodTimeline) -> str:
    return source.message_of(pod) if source is not None and pod.fate in WAITING else ""


def _pod_line(source: RunSource | None, pod: PodTimeline) -> dict[str, object]:
    message = _waiting_message(source, pod)
    return {"pod": pod.key, "fate": pod.fate.value, "node": pod.node, "attempts": pod.attempts, "message": message}
