"""The reasons why pods wait, ranked by the number of pods that have no other reason: one change would place them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.analysis.cluster_sentences import CommonCause, cluster_sentence
from bayplan.analysis.filter_matrix import GATES
from bayplan.analysis.near_spellings import meant_clause
from bayplan.analysis.rows import Rows
from bayplan.analysis.units import format_list
from bayplan.answers.pod_diagnosis import diagnose_pod
from bayplan.answers.trial import Trial
from bayplan.base.counted_nouns import format_count
from bayplan.base.near_names import near_name
from bayplan.objects.pod import Pod

UNATTENDED = "no scheduler"
NO_NODES = "no nodes"
SEVERAL = "several filters"

MAX_DIAGNOSED = 10
"""Maximum number of different pods of a workload to diagnose, which takes a few milliseconds each."""

SHOWN_REASONS = 2
"""Maximum number of other reasons in a sentence."""


class WaitingReason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason why pods fit nowhere.

    Attributes:
        plugin: the filter that rejects every node; ``several filters`` if no single filter does; ``no nodes`` if the
            cluster has none; ``no scheduler`` if no profile has the pods' scheduler name.
        sole_pods: the number of pods that only this reason blocks.
        pods: the number of pods that this reason blocks, alone or together with others.
        summary: the root cause, in words.
        examples: the keys of these pods.
    """

    plugin: str
    sole_pods: int
    pods: int
    summary: str
    examples: list[str]


def equal_pods(pods: Sequence[Pod]) -> list[list[Pod]]:
    """Group pods with equal specs, labels and namespaces; all pods of a group fit the same nodes."""
    groups: dict[bytes, list[Pod]] = {}
    encode = msgspec.msgpack.Encoder().encode
    for pod in pods:
        groups.setdefault(encode((pod.metadata.namespace, pod.metadata.labels, pod.spec)), []).append(pod)
    return list(groups.values())


def waiting_reasons(trial: Trial, pods: Sequence[Pod]) -> Rows[WaitingReason]:
    """Return why pods wait, sorted by the number of pods that have no other reason. Pods that fit now are left out.

    Pods with equal specs, labels and namespaces are evaluated once. A pod that several filters block counts for each of
    them.
    """
    found: dict[tuple[str, str], list[tuple[list[Pod], bool]]] = {}
    for members in equal_pods(pods):
        for plugin, alone, sentence in _blocking(trial, members[0]):
            found.setdefault((plugin, sentence), []).append((members, alone))
    rows = [
        WaitingReason(
            plugin=plugin,
            sole_pods=sum(len(members) for members, alone in entries if alone),
            pods=sum(len(members) for members, _ in entries),
            summary=sentence,
            examples=[pod.key for members, _ in entries for pod in members],
        )
        for (plugin, sentence), entries in found.items()
    ]
    return Rows(sorted(rows, key=lambda row: (-row.sole_pods, -row.pods, row.plugin)), WaitingReason)


def other_reasons(trial: Trial, groups: Sequence[Sequence[Pod]], summary: str) -> str:
    """Return the reasons of pods that wait for a different reason than the first, as text; "" if there are none.

    Args:
        trial: the cluster.
        groups: the waiting pods, see `equal_pods`; those after `MAX_DIAGNOSED` are ignored.
        summary: the reason of the first group.
    """
    found: dict[str, list[Pod]] = {}
    for members in groups[1:MAX_DIAGNOSED]:
        diagnosis = diagnose_pod(trial, members[0])
        if not diagnosis.fits and diagnosis.cause.summary != summary:
            found.setdefault(diagnosis.cause.summary, []).extend(members)
    texts = [
        f"{format_list([pods[0].key], more=len(pods) - 1)}: {reason}"
        for reason, pods in [*found.items()][:SHOWN_REASONS]
    ]
    if len(found) > SHOWN_REASONS:
        texts.append(f"and {format_count(len(found) - SHOWN_REASONS, 'more reason')}")
    return f"{'different reasons' if len(found) > 1 else 'a different reason'}: {'; '.join(texts)}" if texts else ""


def waiting_sentence(reasons: Sequence[WaitingReason], *, waiting: int, gated: int, pods: int, nodes: int) -> str:
    """Return a sentence with the number of waiting pods and the first reason other than gates; "" if there is none.

    Args:
        reasons: the ranked reasons, see `waiting_reasons`.
        waiting, gated, pods, nodes: see `cluster_sentence`.
    """
    first = next((each for each in reasons if each.plugin != GATES), None)
    if first is None:
        return ""
    cause = CommonCause(first.summary, first.pods)
    return cluster_sentence(pods=pods, waiting=waiting, gated=gated, nodes=nodes, reasons=(), cause=cause)


def _blocking(trial: Trial, pod: Pod) -> list[tuple[str, bool, str]]:
    """Return (filter, whether it is the only obstacle, root cause) for each filter that rejects a pod on every node.

    If there is no such filter, the only item has `UNATTENDED`, `NO_NODES` or `SEVERAL` instead. Return [] if the pod fits.
    """
    if pod.spec.scheduler_name not in trial.profiles:
        text = f'no scheduler named "{pod.spec.scheduler_name}" is configured'
        meant = meant_clause([near_name(pod.spec.scheduler_name, trial.profiles)])
        return [(UNATTENDED, True, f"{text}; {meant}" if meant else text)]
    diagnosis = diagnose_pod(trial, pod)
    if diagnosis.fits:
        return []
    cause = diagnosis.cause
    if not cause.everywhere:
        return [(SEVERAL if diagnosis.matrix.nodes else NO_NODES, True, cause.summary)]
    return [(plugin, len(cause.everywhere) == 1, cause.summary) for plugin in cause.everywhere]
