"""Changes to try on a cluster: add, delete or change nodes, fail zones, scale, restart or delete workloads.

A change is written ``KIND=TARGET`` or ``KIND=TARGET:VALUE``; `CHANGES` lists the kinds. Nodes are selected by name,
pattern (``pool-a-*``) or label (``label:disk=ssd``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain

import msgspec
from msgspec.structs import replace

from bayplan.analysis.node_taints import parse_taint
from bayplan.answers.copies import Template, admission_of, check_has_replicas, quota_namespaces, replacement
from bayplan.answers.daemon_pods import daemon_models
from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.drain_rules import uncordoned
from bayplan.answers.node_amounts import check_node_amount
from bayplan.answers.node_groups import ZONE
from bayplan.answers.node_shapes import parse_shape
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.trial import Trial
from bayplan.answers.workloads import KINDS, Found, find_workload
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.cluster.admission import PodAdmission
from bayplan.controllers.pod_ranking import rank_for_deletion
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import tolerates

MAX_ADDED = 100_000
"""Maximum number of nodes or copies that one change may add."""


class Change(msgspec.Struct, frozen=True):
    """A change to try.

    Attributes:
        kind: one of `CHANGES`.
        target: the nodes, zone, workload or number of nodes to change.
        value: the text after the colon of ``KIND=TARGET:VALUE``, or "".
        objects: the objects to create or replace, for ``apply``.
    """

    kind: str
    target: str
    value: str = ""
    objects: tuple[KubernetesObject, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}={self.target}" + (f":{self.value}" if self.value else "")


class Effect(msgspec.Struct):
    """The direct effect of a change, before anything is scheduled.

    Attributes:
        displaced: the pods, by key, that lost their node and are recreated.
        gone: why pods are not recreated, by key.
        added: the workload of each new pod, by key.
        nodes_gone: the names of removed nodes.
        nodes_added: the names of new nodes.
        notes: sentences for the assumptions of the answer.
    """

    displaced: dict[str, Pod] = {}
    gone: dict[str, str] = {}
    added: dict[str, str] = {}
    nodes_gone: dict[str, None] = {}
    nodes_added: dict[str, None] = {}
    notes: dict[str, None] = {}


def parse_change(text: str) -> Change:
    """Parse a change.

    Raises:
        InputError: the text is not a change.
    """
    kind, equals, rest = text.partition("=")
    if equals and kind in CHANGES and not rest:
        raise InputError("change", got=repr(text), wanted=f"{kind}={CHANGES[kind].value or CHANGES[kind].target}")
    if not equals or kind not in CHANGES or not rest:
        close = near_name(kind, CHANGES) if equals and rest else ""
        hint = f"{close}={rest}" if close else "cordon=NODE"
        raise InputError("change", got=repr(text), wanted=f"KIND=TARGET with a KIND of {', '.join(CHANGES)}", hint=hint)
    takes_value = CHANGES[kind].value
    if not takes_value:
        return Change(kind, rest)
    if kind == "add-nodes":
        target, colon, value = rest.partition(":")
    elif kind in ("taint", "untaint", "resize"):
        # A label selector contains a colon itself.
        start = len("label:") if rest.startswith("label:") else 0
        place = rest.find(":", start)
        target, colon, value = (rest[:place], ":", rest[place + 1 :]) if place >= 0 else (rest, "", "")
    else:
        target, colon, value = rest.rpartition(":")
    if not colon or not target or not value:
        raise InputError("change", got=repr(text), wanted=f"{kind}={takes_value}")
    return Change(kind, target, value)


def missing_change(kinds: Collection[str], texts: Sequence[str] = ()) -> InputError:
    """Return the error about a what-if question without a change.

    Args:
        kinds: the kinds of changes to name.
        texts: what was given instead; a text with an equals sign, such as ``losezone=a``, was meant as a change.
    """
    wanted = f"KIND=TARGET with one of {', '.join(kinds)}"
    meant = [text for text in texts if "=" in text]
    for text in meant:
        kind, _, target = text.partition("=")
        if close := near_name(kind, kinds):
            return InputError("what-if", got=f"'{text}'", wanted=wanted, hint=f"{close}={target}")
    return InputError("what-if", got=f"'{meant[0]}'" if meant else "none", wanted=wanted, hint="lose-zone=ZONE")


def is_change(text: str) -> bool:
    """Return whether a text has the form of a change rather than of a source."""
    kind, equals, _ = text.partition("=")
    return bool(equals) and kind in CHANGES


def apply_change(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    """Apply a change. Pods that it displaces are only recorded in `effect`.

    Raises:
        InputError: the target does not exist, or the value can't be parsed.
    """
    CHANGES[change.kind].apply(change, trial, cluster, effect)


# --- nodes ------------------------------------------------------------------------------------------------------------


def select_nodes(text: str, trial: Trial) -> list[Node]:
    """Return the nodes of a trial that a text selects: a name, a pattern, ``label:key=value`` or ``label:key`` (any value).

    Raises:
        InputError: no node matches.
    """
    return matching_nodes(text, trial.nodes())


def matching_nodes(text: str, nodes: Sequence[Node]) -> list[Node]:
    """Return those of the given nodes that a text selects; see `select_nodes`.

    Raises:
        InputError: no node matches.
    """
    if text.startswith("label:"):
        key, equals, value = text.removeprefix("label:").partition("=")
        found = [node for node in nodes if key in node.metadata.labels]
        found = [node for node in found if not equals or node.metadata.labels[key] == value]
    else:
        found = [node for node in nodes if fnmatchcase(node.metadata.name, text)]
    if not found:
        close = _near_selection(text, nodes)
        raise InputError(
            "nodes",
            got=repr(text),
            wanted="the name of a node, or a pattern (pool-a-*) or label (label:KEY=VALUE) that matches a node",
            hint=f"'{close}'" if close else "",
        )
    return found


def _near_selection(text: str, nodes: Sequence[Node]) -> str:
    """Return the name of a node, or the label, that a text was probably meant to select; "" if none is similar."""
    if not text.startswith("label:"):
        return near_name(text, [node.metadata.name for node in nodes])
    return near_label(text, [node.metadata.labels for node in nodes])


def near_label(text: str, labels: Iterable[Mapping[str, str]]) -> str:
    """Return the existing label that a text such as ``label:KEY=VALUE`` resembles, in the same form; "" if there is none."""
    key, equals, value = text.removeprefix("label:").partition("=")
    known: dict[str, dict[str, None]] = {}
    for each in labels:
        for name, content in each.items():
            known.setdefault(name, {})[content] = None
    key = key if key in known else near_name(key, known)
    values = known.get(key, {})
    value = value if value in values else near_name(value, values)
    return f"label:{key}{equals}{value}" if key and (value or not equals) else ""


def select_names(text: str, cluster: QuestionCluster) -> list[str]:
    """Return the names of a cluster's nodes that a text selects; see `select_nodes`.

    Raises:
        InputError: no node matches.
    """
    return [node.metadata.name for node in matching_nodes(text, cluster.all(Node))]


def _nodes_to_empty(change: Change, trial: Trial, effect: Effect) -> list[Node]:
    """Return the nodes that a change removes or drains.

    Labels and patterns select no nodes that an earlier change has added: these replace the selected ones.

    Raises:
        InputError: no node matches, or only added ones.
    """
    selected = matching_nodes(change.target, trial.nodes())
    if any(node.metadata.name == change.target for node in selected):
        return selected
    old = [node for node in selected if node.metadata.name not in effect.nodes_added]
    if not old:
        wanted = "the name of a node, or a pattern or label that matches other nodes"
        raise InputError(
            "nodes", got=f"{change.target!r}, which only matches nodes that are added before", wanted=wanted
        )
    if len(old) < len(selected):
        effect.notes[f"{change} does not select nodes that are added before"] = None
    return old


def _delete_nodes(nodes: Sequence[Node], trial: Trial, effect: Effect) -> None:
    for node in nodes:
        effect.nodes_gone[node.metadata.name] = None
        for pod in trial.remove_node(node.metadata.name):
            _displace(pod, effect)


def _displace(pod: Pod, effect: Effect, why_gone: str = "it ends with its node") -> None:
    """Record a pod that has lost its node: as displaced if it is recreated, else as gone for the given reason."""
    effect.added.pop(pod.key, None)
    if not is_recreated_elsewhere(pod):
        effect.gone[pod.key] = why_gone
        return
    effect.displaced[pod.key] = pod
    if pod.metadata.controller() is None:
        effect.notes[
            "pods without a controller come back as copies; in a real cluster you have to create them yourself"
        ] = None


def _remove_nodes(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    _delete_nodes(_nodes_to_empty(change, trial, effect), trial, effect)


def _remove_zone(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    found = [node for node in trial.nodes() if node.metadata.labels.get(ZONE) == change.target]
    if not found:
        zones = sorted({node.metadata.labels.get(ZONE, "") for node in trial.nodes()} - {""})
        raise InputError(
            "lose-zone", got=repr(change.target), wanted=f"a zone of this cluster: {', '.join(zones) or 'none'}"
        )
    _delete_nodes(found, trial, effect)


def _drain_nodes(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    nodes = _nodes_to_empty(change, trial, effect)
    for node in nodes:
        trial.put(replace(node, spec=replace(node.spec, unschedulable=True)))
    for node in nodes:
        for pod in trial.pods_on(node.metadata.name):
            if is_recreated_elsewhere(pod):
                trial.remove_pod(pod.key)
                _displace(pod, effect)
    effect.notes[
        "drained nodes are emptied immediately, regardless of disruption budgets (nodes remove honours them)"
    ] = None


def _cordon(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    for node in select_nodes(change.target, trial):
        cordoned = replace(node, spec=replace(node.spec, unschedulable=True))
        trial.put(cordoned if change.kind == "cordon" else uncordoned(node))


def _taint(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    taint = parse_taint(change.value)
    for node in select_nodes(change.target, trial):
        others = tuple(old for old in node.spec.taints if (old.key, old.effect) != (taint.key, taint.effect))
        trial.put(replace(node, spec=replace(node.spec, taints=(*others, taint))))
        if taint.effect != "NoExecute":
            continue
        effect.notes[
            "pods leave a node with a new NoExecute taint immediately, even if they tolerate it for some time"
        ] = None
        for pod in trial.pods_on(node.metadata.name):
            stays = any(
                each.toleration_seconds is None and tolerates(each, taint, comparison_operators=False)
                for each in pod.spec.tolerations
            )
            if not stays:
                trial.remove_pod(pod.key)
                _displace(pod, effect, f"it does not tolerate the taint {change.value}")


def _untaint(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    nodes = select_nodes(change.target, trial)
    keys = dict.fromkeys(taint.key for node in nodes for taint in node.spec.taints)
    if change.value not in keys:
        near = near_name(change.value, keys)
        raise InputError(
            "untaint",
            got=repr(change.value),
            wanted=f"the key of a taint of {change.target}" + (f": {', '.join(keys)}" if keys else ", but it has none"),
            hint=f"untaint={change.target}:{near}" if near else "",
        )
    for node in nodes:
        kept = tuple(taint for taint in node.spec.taints if taint.key != change.value)
        trial.put(replace(node, spec=replace(node.spec, taints=kept)))


def _resize(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    amounts: dict[str, str] = {}
    for part in change.value.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError("resize", got=repr(part), wanted="resource=amount", hint="resize=NODE:cpu=8,memory=32Gi")
        check_node_amount(key, value, what="resize", example="resize=NODE:cpu=8,memory=32Gi")
        amounts[key] = value
    for node in select_nodes(change.target, trial):
        allocatable = {**node.status.allocatable, **amounts}
        trial.put(replace(node, status=replace(node.status, allocatable=allocatable, capacity=allocatable)))
    effect.notes["pods stay on a node that has become too small for them"] = None


def _add_nodes(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    if change.value.isdigit() and not change.target.isdigit():
        hint = f"add-nodes={change.value}:like={change.target}"
        raise InputError("add-nodes", got=repr(f"{change.target}:{change.value}"), wanted="COUNT:SHAPE", hint=hint)
    count = _count("add-nodes", change.target)
    try:
        shape, daemons = parse_shape(change.value, cluster.state), daemon_models(cluster.state)
    except InputError as problem:
        if not any(f"like={name}" in change.value.split(",") for name in effect.nodes_gone):
            raise
        got = "the name of a node that an earlier change removes"
        raise InputError(problem.what, wanted=problem.wanted, got=got, hint=f"{change} as the first change") from None
    for number in range(count):
        name = f"added-{len(effect.nodes_added) + 1}"
        while name in trial.state.nodes.row_of:
            name += f"-{number}"
        effect.nodes_added[name] = None
        for item in shape.objects(name, daemons):
            trial.put(item)
            if isinstance(item, Pod):
                owner = item.metadata.controller()
                assert owner is not None
                effect.added[item.key] = f"daemonset/{item.metadata.namespace}/{owner.name}"


# --- workloads --------------------------------------------------------------------------------------------------------


def _scale(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    found, wanted = find_workload(change.target, cluster), _count("scale", change.value)
    check_has_replicas(found)
    present = [pod for pod in found.pods if pod.key not in effect.gone]
    if wanted < len(present):
        ranked = rank_for_deletion(present, present, cluster.now_ns)
        for pod in ranked[: len(present) - wanted]:
            trial.remove_pod(pod.key)
            effect.displaced.pop(pod.key, None)
            effect.gone[pod.key] = f"{change.target} is scaled down"
        return
    template, count = Template(found, cluster), wanted - len(present)
    admission = _admission(found, trial, cluster, effect)
    for number in range(count):
        items = template.next()
        *_, copy = items
        if admission is not None and isinstance(copy, Pod):
            try:
                admission.charge(copy)
            except InputError as refused:
                effect.notes[
                    f"{format_count(count - number, 'new replica')} of {template.label} {is_or_are(count - number)} "
                    f"never created: {refused.got}"
                ] = None
                return
        trial.add_all(items)
        effect.added[copy.key] = template.label


def _admission(found: Found, trial: Trial, cluster: QuestionCluster, effect: Effect) -> PodAdmission | None:
    """Return admission with what earlier changes leave of the quotas of a workload's namespace; None if it has no quotas."""
    if found.namespace not in quota_namespaces(cluster):
        return None
    left = [pod for pod in cluster.all(Pod) if pod.key not in effect.gone]
    # New replicas replace those of an earlier change of the same workload.
    others = (trial.scheduler.pods.get(key) for key, label in effect.added.items() if label != found.label)
    return admission_of(cluster, [found.namespace], chain(left, (pod for pod in others if pod is not None)))


def _restart(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    for pod in find_workload(change.target, cluster).pods:
        if trial.remove_pod(pod.key) is not None:
            trial.place(replacement(pod, cluster))
    effect.notes["restarted pods are replaced one by one: each is deleted before its replacement is scheduled"] = None


def _delete(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    for pod in find_workload(change.target, cluster).pods:
        trial.remove_pod(pod.key)
        effect.displaced.pop(pod.key, None)
        effect.gone[pod.key] = f"{change.target} is deleted"


def _priority(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    try:
        priority = int(change.value)
    except ValueError:
        raise InputError("priority", got=repr(change.value), wanted="an integer") from None
    if not -(2**31) <= priority < 2**31:
        raise InputError("priority", got=change.value, wanted="a 32-bit integer")
    for pod in find_workload(change.target, cluster).pods:
        spec = replace(pod.spec, priority=priority)
        # Clear the resource version, or the scheduler would ignore the update as a duplicate.
        trial.put(replace(pod, metadata=replace(pod.metadata, resource_version=""), spec=spec))
    effect.notes["a priority is changed in place; a real cluster needs new pods for that"] = None


def _apply(change: Change, trial: Trial, cluster: QuestionCluster, effect: Effect) -> None:
    workloads: list[str] = []
    for item in change.objects:
        trial.put(item)
        if isinstance(item, Pod) and cluster.get(Pod, item.key) is None:
            effect.added[item.key] = change.target
        elif isinstance(item, Node) and cluster.get(Node, item.key) is None:
            effect.nodes_added[item.key] = None
        elif type(item).__name__.lower() in KINDS:
            workloads.append(f"{type(item).__name__.lower()}/{item.key}")
    if workloads:
        several = len(workloads) > 1
        names, their = (
            (f"{len(workloads):,} applied workloads", "their") if several else (f"applied {workloads[0]}", "its")
        )
        effect.notes[f"no controller acts on the {names}: {their} pods are neither created nor replaced"] = None


def _count(what: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > MAX_ADDED:
        raise InputError(what, got=repr(text), wanted=f"an integer from 0 to {MAX_ADDED:,}")
    return int(text)


class _Kind(msgspec.Struct, frozen=True):
    """A kind of change.

    Attributes:
        value: the syntax of its target and value; "" if it has no value.
        apply: the function that applies it.
        target: the syntax of the target if it has no value.
    """

    value: str
    apply: Callable[[Change, Trial, QuestionCluster, Effect], None]
    target: str = "NODES"


CHANGES: dict[str, _Kind] = {
    "lose-zone": _Kind("", _remove_zone, "ZONE"),
    "remove-nodes": _Kind("", _remove_nodes),
    "drain": _Kind("", _drain_nodes),
    "cordon": _Kind("", _cordon),
    "uncordon": _Kind("", _cordon),
    "taint": _Kind("NODES:key=value:Effect", _taint),
    "untaint": _Kind("NODES:key", _untaint),
    "resize": _Kind("NODES:cpu=8,memory=32Gi", _resize),
    "add-nodes": _Kind("COUNT:SHAPE", _add_nodes),
    "scale": _Kind("WORKLOAD:REPLICAS", _scale),
    "restart": _Kind("", _restart, "WORKLOAD"),
    "delete": _Kind("", _delete, "WORKLOAD"),
    "priority": _Kind("WORKLOAD:NUMBER", _priority),
    "apply": _Kind("", _apply, "FILE"),
}
"""The kinds of changes, by name."""
