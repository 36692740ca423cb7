"""Find pods by a text: a name, a namespace and a name, a prefix, or a workload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.analysis.units import format_choice
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.sim.result import PodTimeline

SHORT_NAMES = {
    "cj": "cronjob",
    "deploy": "deployment",
    "ds": "daemonset",
    "po": "pod",
    "rc": "replicationcontroller",
    "rs": "replicaset",
    "sts": "statefulset",
}
"""Short names of kinds, as in kubectl."""

LISTED = 5
"""Maximum number of candidates named in an error."""

LISTING = "bayplan waiting, which lists the pending pods"
"""The suggestion if no name is similar, and the error does not name all pods."""


def find_pods(text: str, pods: Iterable[PodTimeline]) -> list[PodTimeline]:
    """Return the timelines of the matching pod, or of all pods of the matching workload.

    In this order: ``namespace/name``; ``name`` in any namespace; ``kind/name`` or ``kind/namespace/name`` of a workload (or of
    an intermediate owner, a ReplicaSet); a prefix of one pod's name. A pod that was recreated under the same name has several
    timelines, the newest last.

    Raises:
        InputError: nothing matches, or the text is ambiguous; lists the candidates.
    """
    named: dict[str, list[PodTimeline]] = {}
    for pod in pods:
        named.setdefault(pod.key, []).append(pod)
    if text in named:
        return named[text]
    same = [key for key in named if key.rpartition("/")[2] == text]
    if same:
        return named[_the_one(text, same, named)]
    owned = _owned(text, named)
    if owned:
        return owned
    kind, slash, name = text.partition("/")
    if slash and SHORT_NAMES.get(kind.lower(), kind.lower()) in ("pod", "pods") and name:
        return find_pods(name, (pod for timelines in named.values() for pod in timelines))
    begun = [key for key in named if key.startswith(text) or key.rpartition("/")[2].startswith(text)]
    if begun:
        return named[_the_one(text, begun, named)]
    raise _unknown(text, named)


def _the_one(text: str, keys: Sequence[str], named: dict[str, list[PodTimeline]]) -> str:
    if len(keys) == 1:
        return keys[0]
    got = f"'{text}', which could be {format_choice(keys[:LISTED], more=max(len(keys) - LISTED, 0))}"
    raise InputError("pod", wanted="the name of one pod", got=got, hint=f"'{keys[0]}'{_shared_workload(keys, named)}")


def _shared_workload(keys: Sequence[str], named: dict[str, list[PodTimeline]]) -> str:
    """Return a hint that names the workload of all these pods; "" if they don't share one."""
    workloads = {named[key][-1].workload for key in keys}
    kind, _, owner = workloads.pop().partition(" ")
    return f" or '{kind.lower()}/{owner}'" if owner and not workloads else ""


def _owned(text: str, named: dict[str, list[PodTimeline]]) -> list[PodTimeline]:
    """Return the pods of the workload or controlling owner ``kind/name``; [] if there are none, or the text has no ``/``."""
    kind, slash, name = text.partition("/")
    if not slash:
        return []
    kind = SHORT_NAMES.get(kind.lower(), kind.lower())
    found = []
    for timelines in named.values():
        for pod in timelines:
            owners = [pod.workload.partition(" ")[::2]] if pod.workload else []
            namespace = pod.key.rpartition("/")[0]
            controller = pod.pod.metadata.controller() if pod.pod is not None else None
            if controller is not None:
                owners.append((controller.kind, f"{namespace}/{controller.name}"))
            if any(
                kind in (owner_kind.lower(), f"{owner_kind.lower()}s")
                and name in (owner_key, owner_key.rpartition("/")[2])
                for owner_kind, owner_key in owners
            ):
                found.append(pod)
    return found


def _unknown(text: str, named: dict[str, list[PodTimeline]]) -> InputError:
    names: dict[str, str] = {}
    for key in named:
        names.setdefault(key.rpartition("/")[2], key)
        names[key] = key
    for pods in named.values():
        kind, _, owner = pods[-1].workload.partition(" ")
        if owner:
            workload = f"{kind.lower()}/{owner}"
            names.setdefault(owner.rpartition("/")[2], workload)
            names.setdefault(f"{kind.lower()}/{owner.rpartition('/')[2]}", workload)
            names.setdefault(workload, workload)
    # The same name in another namespace is a better suggestion than a similar name.
    name = text.rpartition("/")[2]
    close = name if name in names else near_name(text, names)
    hint = "" if named else "input with pods"
    if close:
        hint = f"'{names[close]}'"
    elif len(named) > LISTED:
        hint = LISTING
    return InputError("pod", got=f"'{text}'", wanted=_expected(named), hint=hint)


def _expected(named: dict[str, list[PodTimeline]]) -> str:
    """Return the expected value for the error message, with the pods' names if there are few."""
    if not named:
        return "a pod, but there are none"
    if len(named) <= LISTED:
        return f"a pod or workload (pods: {', '.join(named)})"
    return f"the name of one of {len(named):,} pods, or of a workload"
