"""Assumptions of answers: the configuration and its origin, sampling, the age of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bayplan.app.mode import Mode
from bayplan.app.sources.cluster_source import Assumption, SourceOptions, UnreadKind
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time, parse_time_ns
from bayplan.cluster.owned_pods import is_finished
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

_SCHEDULER = "kube-scheduler"


def configuration_assumption(
    options: SourceOptions, objects: Iterable[KubernetesObject], found: str = ""
) -> Assumption:
    """Return the assumption about the configuration: which one it is, and how that is known.

    Args:
        options: the options of the user.
        objects: the objects of the source.
        found: the description of the source's configuration; "" if it has none.
    """
    if options.config is not None:
        return Assumption("configuration", f"the scheduler is configured by {options.config}")
    if options.mode is Mode.CLASSIC:
        provider = options.algorithm_provider or "DefaultProvider"
        return Assumption("configuration", f"the classic scheduler decides, with {provider}")
    if found:
        return Assumption("configuration", found)
    pod, flags = scheduler_flags(objects)
    if pod and flags.get("config"):
        text = f"{pod} reads {flags['config']}, which the API does not show; kube-scheduler's defaults are assumed (--config)"
    elif pod:
        text = f"kube-scheduler's defaults apply: {pod} runs without --config"
    else:
        text = "kube-scheduler's defaults apply, because no configuration was given (--config)"
    return Assumption("configuration", text)


def scheduler_flags(objects: Iterable[KubernetesObject]) -> tuple[str, dict[str, str]]:
    """Return the key of kube-scheduler's pod and its command-line flags by name; ("", {}) if no pod runs it.

    Self-managed control planes (kubeadm, kind, kOps) run it as a static pod in kube-system; managed ones do not show
    it.
    """
    for item in objects:
        if not isinstance(item, Pod) or item.metadata.namespace != "kube-system":
            continue
        for container in item.spec.containers:
            words = (*container.command, *container.args)
            if words and words[0].rpartition("/")[2] == _SCHEDULER:
                return item.key, _flags(words[1:])
    return "", {}


def _flags(words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, word in enumerate(words):
        if not word.startswith("--"):
            continue
        name, equals, value = word[2:].partition("=")
        if not equals and place + 1 < len(words) and not words[place + 1].startswith("--"):
            value = words[place + 1]
        found[name] = value
    return found


def sampling_assumption(
    configuration: SchedulerConfiguration, objects: Iterable[KubernetesObject]
) -> Assumption | None:
    """Return the assumption that all nodes are examined, or None if the cluster's scheduler examines all nodes, too."""
    nodes = sum(isinstance(item, Node) for item in objects)
    percentage = configuration.percentage_of_nodes_to_score
    # Below 100 nodes, all are examined, regardless of the percentage (minFeasibleNodesToFind).
    if nodes < 100 or percentage == 100:
        return None
    shown = f"percentageOfNodesToScore {percentage}" if percentage else "the default percentageOfNodesToScore"
    return Assumption("nodes", f"all {nodes:,} nodes are examined; with {shown} kube-scheduler may stop earlier")


def scheduler_name_assumption(
    configuration: SchedulerConfiguration, objects: Iterable[KubernetesObject]
) -> Assumption | None:
    """Return the assumption about pending pods that name other schedulers, or None if there are no such pods."""
    known = {profile.scheduler_name for profile in configuration.profiles}
    names: dict[str, int] = {}
    for item in objects:
        if isinstance(item, Pod) and not item.spec.node_name and not is_finished(item):
            name = item.spec.scheduler_name
            if name not in known:
                names[name] = names.get(name, 0) + 1
    if not names:
        return None
    shown = ", ".join(f"{name} ({count:,})" for name, count in sorted(names.items()))
    return Assumption(
        "configuration", f"the configuration of the schedulers that other pending pods name is unknown: {shown}"
    )


def unread_assumptions(unread: Sequence[UnreadKind]) -> Iterator[Assumption]:
    """Yield the assumptions about kinds that could not be read."""
    for each in unread:
        yield Assumption("unread", f"{each.kind} objects could not be read ({each.reason}): {each.effect}")


def newest_time_ns(objects: Iterable[KubernetesObject]) -> int:
    """Return the latest time in any object, which bounds the age of the data; 0 if no object has a time."""
    newest = 0
    for item in objects:
        newest = max(newest, *(_time_ns(text) for text in _times(item)))
    return newest


def _times(item: KubernetesObject) -> Iterator[str | None]:
    yield item.metadata.creation_timestamp
    if isinstance(item, Pod):
        yield item.status.start_time
        for condition in item.status.conditions:
            yield condition.last_transition_time
    elif isinstance(item, Node):
        for state in item.status.conditions:
            yield state.last_transition_time


def _time_ns(text: str | None) -> int:
    try:
        return parse_time_ns(text) if text else 0
    except InputError:
        return 0


def time_text(time_ns: int) -> str:
    """Return a time as Kubernetes writes it."""
    return format_time(time_ns)
