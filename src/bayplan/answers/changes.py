"""Changes to try on a cluster: add, delete or change nodes, fail zones, scale, restart or delete workloads.

A change is written ``KIND=TARGET`` or ``KIND=TARGET:VALUE``; `CHANGES` lists the kinds. Nodes are selected by name,
pattern (``pool-a-*``) or label (``label:disk=ssd``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.analysis.node_taints import parse_taint, taint_text
from bayplan.answers.applied_objects import apply_to, merged_metadata
from bayplan.answers.changed_cluster import ChangedCluster
from bayplan.answers.copies import Template, admission_of, check_has_replicas, quota_namespaces, replacement
from bayplan.answers.daemon_pods import daemon_models
from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.drain_rules import Budgets, drain_notes, uncordoned
from bayplan.answers.node_amounts import check_node_amount
from bayplan.answers.node_groups import ZONE
from bayplan.answers.node_selection import matching_nodes
from bayplan.answers.node_shapes import parse_shape
from bayplan.answers.workloads import KINDS
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.near_names import near_name
from bayplan.base.plain_data import Document, part
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.namespace_policies import PodForbidden
from bayplan.controllers.pod_ranking import rank_active, rank_for_deletion
from bayplan.controllers.stateful_pods import ordinal_of
from bayplan.objects.admission import PriorityClasses, with_priority_class
from bayplan.objects.kinds import encode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod, PodSpec
from bayplan.objects.policy import PodDisruptionBudget, PriorityClass
from bayplan.objects.selectors import tolerates

T = TypeVar("T", bound=KubernetesObject)

API_TOKEN = "kube-api-access-"
"""The start of the name of the volume that kube-apiserver adds to pods for the token of their service account."""

MAX_ADDED = 100_000
"""Maximum number of nodes or copies that one change may add."""


class Change(msgspec.Struct, frozen=True):
    """A change to try.

    Attributes:
        kind: one of `CHANGES`.
        target: the nodes, zone, workload or number of nodes to change.
        value: the text after the colon of ``KIND=TARGET:VALUE``, or "".
        objects: the objects to create or replace, for ``apply``.
        specs: the specs of these objects as written; () if all fields are meant that differ from their defaults.
    """

    kind: str
    target: str
    value: str = ""
    objects: tuple[KubernetesObject, ...] = ()
    specs: tuple[Document, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}={self.target}" + (f":{self.value}" if self.value else "")


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


def apply_change(change: Change, here: ChangedCluster) -> None:
    """Apply a change. Pods that it displaces are not scheduled again yet.

    Raises:
        InputError: the target does not exist, or the value can't be parsed.
    """
    CHANGES[change.kind].apply(change, here)


# --- nodes ------------------------------------------------------------------------------------------------------------


def _nodes_to_empty(change: Change, here: ChangedCluster) -> list[Node]:
    """Return the nodes that a change removes or drains.

    Labels and patterns select no nodes that an earlier change has added: these replace the selected ones.

    Raises:
        InputError: no node matches, or only added ones.
    """
    selected = matching_nodes(change.target, here.trial.nodes())
    if any(node.metadata.name == change.target for node in selected):
        return selected
    old = [node for node in selected if node.metadata.name not in here.effect.nodes_added]
    if not old:
        wanted = "the name of a node, or a pattern or label that matches other nodes"
        raise InputError(
            "nodes", got=f"{change.target!r}, which only matches nodes that are added before", wanted=wanted
        )
    if len(old) < len(selected):
        here.effect.notes[f"{change} does not select nodes that are added before"] = None
    return old


def _delete_nodes(nodes: Sequence[Node], here: ChangedCluster) -> None:
    for node in nodes:
        here.effect.nodes_gone[node.metadata.name] = None
        for pod in here.trial.remove_node(node.metadata.name):
            here.displace(pod)


def _remove_nodes(change: Change, here: ChangedCluster) -> None:
    _delete_nodes(_nodes_to_empty(change, here), here)


def _remove_zone(change: Change, here: ChangedCluster) -> None:
    found = [node for node in here.trial.nodes() if node.metadata.labels.get(ZONE) == change.target]
    if not found:
        zones = sorted({node.metadata.labels.get(ZONE, "") for node in here.trial.nodes()} - {""})
        raise InputError(
            "lose-zone", got=repr(change.target), wanted=f"a zone of this cluster: {', '.join(zones) or 'none'}"
        )
    _delete_nodes(found, here)


def _drain_nodes(change: Change, here: ChangedCluster) -> None:
    nodes = _nodes_to_empty(change, here)
    for node in nodes:
        here.trial.put(replace(node, spec=replace(node.spec, unschedulable=True)))
    pods = [pod for node in nodes for pod in here.trial.pods_on(node.metadata.name) if is_recreated_elsewhere(pod)]
    notes = drain_notes(pods, Budgets(here.trial.catalog.all(PodDisruptionBudget)))
    for pod in pods:
        here.displace(pod)
    here.effect.notes[
        "drained nodes are emptied immediately, regardless of disruption budgets (nodes remove honours them)"
    ] = None
    here.effect.warnings.update(dict.fromkeys(notes))


def _cordon(change: Change, here: ChangedCluster) -> None:
    for node in matching_nodes(change.target, here.trial.nodes()):
        cordoned = replace(node, spec=replace(node.spec, unschedulable=True))
        here.trial.put(cordoned if change.kind == "cordon" else uncordoned(node))


def _taint(change: Change, here: ChangedCluster) -> None:
    taint = parse_taint(change.value)
    for node in matching_nodes(change.target, here.trial.nodes()):
        others = tuple(old for old in node.spec.taints if (old.key, old.effect) != (taint.key, taint.effect))
        here.trial.put(replace(node, spec=replace(node.spec, taints=(*others, taint))))
        _evict(node.metadata.name, [taint], here)


def _evict(node: str, taints: Iterable[Taint], here: ChangedCluster) -> None:
    """Evict the pods that do not tolerate the new taints of a node, if their effect is NoExecute."""
    for taint in taints:
        if taint.effect != "NoExecute":
            continue
        here.effect.notes[
            "pods leave a node with a new NoExecute taint immediately, even if they tolerate it for some time"
        ] = None
        for pod in here.trial.pods_on(node):
            stays = any(
                each.toleration_seconds is None and tolerates(each, taint, comparison_operators=False)
                for each in pod.spec.tolerations
            )
            if not stays:
                here.displace(pod, f"it does not tolerate the taint {taint_text(taint)}")


def _untaint(change: Change, here: ChangedCluster) -> None:
    nodes = matching_nodes(change.target, here.trial.nodes())
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
        here.trial.put(replace(node, spec=replace(node.spec, taints=kept)))


def _resize(change: Change, here: ChangedCluster) -> None:
    amounts: dict[str, str] = {}
    for amount in change.value.split(","):
        key, equals, value = amount.partition("=")
        if not equals:
            raise InputError("resize", got=repr(amount), wanted="resource=amount", hint="resize=NODE:cpu=8,memory=32Gi")
        if key in amounts:
            raise InputError("resize", got=f"{key} twice", wanted="each resource once")
        check_node_amount(key, value, what="resize", example="resize=NODE:cpu=8,memory=32Gi")
        amounts[key] = value
    for node in matching_nodes(change.target, here.trial.nodes()):
        allocatable = {**node.status.allocatable, **amounts}
        here.trial.put(replace(node, status=replace(node.status, allocatable=allocatable, capacity=allocatable)))
    here.effect.notes["pods stay on a node that has become too small for them"] = None


def _add_nodes(change: Change, here: ChangedCluster) -> None:
    if change.value.isdigit() and not change.target.isdigit():
        hint = f"add-nodes={change.value}:like={change.target}"
        raise InputError("add-nodes", got=repr(f"{change.target}:{change.value}"), wanted="COUNT:SHAPE", hint=hint)
    count = _count("add-nodes", change.target)
    try:
        shape, daemons = (
            parse_shape(change.value, here.trial.state),
            daemon_models(here.trial.state, here.ended.values()),
        )
    except InputError as problem:
        if not any(f"like={name}" in change.value.split(",") for name in here.effect.nodes_gone):
            raise
        got = "the name of a node that an earlier change removes"
        raise InputError(problem.what, wanted=problem.wanted, got=got, hint=f"{change} as the first change") from None
    for number in range(count):
        name = f"added-{len(here.effect.nodes_added) + 1}"
        while name in here.trial.state.nodes.row_of:
            name += f"-{number}"
        here.effect.nodes_added[name] = None
        for item in shape.objects(name, daemons):
            here.trial.put(item)
            if isinstance(item, Pod):
                owner = item.metadata.controller()
                assert owner is not None
                here.effect.added[item.key] = f"daemonset/{item.metadata.namespace}/{owner.name}"


# --- workloads --------------------------------------------------------------------------------------------------------


def _scale(change: Change, here: ChangedCluster) -> None:
    found, wanted = here.workload(change.target), _count("scale", change.value)
    check_has_replicas(found)
    present = here.present(found.pods)
    if wanted < len(present):
        for pod in _in_order_of_deletion(present, here.now_ns)[: len(present) - wanted]:
            here.remove(pod, f"{change.target} is scaled down")
        return
    template, count = Template(found, here, here.effect.copies), wanted - len(present)
    admission = None
    if found.namespace in quota_namespaces(here):
        admission = admission_of(here, [found.namespace], here.present(here.all(Pod)))
    for number in range(count):
        *others, copy = template.next()
        assert isinstance(copy, Pod)
        if admission is not None:
            try:
                admission.charge(copy)
            except InputError as refused:
                here.effect.warnings[
                    f"{format_count(count - number, 'new replica')} of {template.label} {is_or_are(count - number)} "
                    f"never created: {refused.got}"
                ] = None
                return
        here.trial.add_all(others)
        here.create(copy, template.label)


def _in_order_of_deletion(pods: Sequence[Pod], now_ns: int) -> list[Pod]:
    """Return the pods of a workload in the order in which its controller deletes them."""
    owner = pods[0].metadata.controller()
    if owner is not None and owner.kind == "StatefulSet":
        return sorted(pods, key=lambda pod: -ordinal_of(pod.metadata.name))
    return rank_active(pods) if owner is not None and owner.kind == "Job" else rank_for_deletion(pods, pods, now_ns)


def _restart(change: Change, here: ChangedCluster) -> None:
    for pod in here.workload(change.target).pods:
        if here.trial.remove_pod(pod.key) is not None:
            here.trial.place(replacement(pod, here))
    here.effect.notes["restarted pods are replaced one by one: each is deleted before its replacement is scheduled"] = (
        None
    )


def _delete(change: Change, here: ChangedCluster) -> None:
    pods = here.workload(change.target).pods
    for pod in here.present(pods):
        here.remove(pod, f"{change.target} is deleted")
    for pod in pods:
        here.ended.pop(pod.key, None)


def _priority(change: Change, here: ChangedCluster) -> None:
    try:
        found, priority = None, int(change.value)
    except ValueError:
        classes = PriorityClasses(here.trial.catalog.all(PriorityClass))
        found = classes.find(change.value)
        if found is None:
            wanted = f"an integer or the name of a priority class: {', '.join(classes.names())}"
            raise InputError("priority", got=repr(change.value), wanted=wanted) from None
        priority = found.value
    if not -(2**31) <= priority < 2**31:
        raise InputError("priority", got=change.value, wanted="a 32-bit integer")
    for pod in here.present(here.workload(change.target).pods):
        here.update(
            replace(pod, spec=replace(pod.spec, priority=priority))
            if found is None
            else with_priority_class(pod, found)
        )
    here.effect.notes["a priority is changed in place; a real cluster needs new pods for that"] = None


def _apply(change: Change, here: ChangedCluster) -> None:
    workloads: list[str] = []
    specs = change.specs or [part(encode(item), "spec") for item in change.objects]
    for item, spec in zip(change.objects, specs, strict=True):
        if isinstance(item, Node):
            old = here.trial.node(item.key)
            here.trial.put(apply_to(old, item, spec))
            if old is None:
                here.effect.nodes_added[item.key] = None
            else:
                _evict(item.key, [taint for taint in item.spec.taints if taint not in old.spec.taints], here)
        elif not isinstance(item, Pod):
            here.trial.put(apply_to(here.get(type(item), item.key), item, spec))
            if type(item).__name__.lower() in KINDS:
                workloads.append(f"{type(item).__name__.lower()}/{item.key}")
    # Applied limits, quotas and priority classes hold for all pods of the file.
    pods = {item.key: item for item in change.objects if isinstance(item, Pod)}
    others = [pod for pod in here.present(here.all(Pod)) if pod.key not in pods] if pods else []
    admission = admission_of(here, sorted({pod.metadata.namespace for pod in pods.values()}), others)
    for pod in pods.values():
        _apply_pod(pod, change.target, admission, here)
    if workloads:
        several = len(workloads) > 1
        names, their = (
            (f"{len(workloads):,} applied workloads", "their") if several else (f"applied {workloads[0]}", "its")
        )
        here.effect.notes[f"no controller acts on the {names}: {their} pods are neither created nor replaced"] = None


def _apply_pod(pod: Pod, file: str, admission: PodAdmission, here: ChangedCluster) -> None:
    """Create a pod, or replace the one with its name: if that one has a node, it is deleted, and the new one scheduled.

    Raises:
        InputError: the pod names a priority class that does not exist.
    """
    old = here.current(pod.key)
    try:
        pod = replace(pod, spec=admission.admit(pod))
        admission.charge(pod)
    except PodForbidden as refused:
        here.effect.warnings[f"{pod.key} is never {'created' if old is None else 'replaced'}: {refused.got}"] = None
        return
    if old is None:
        here.create(pod, file)
    elif here.trial.node_of(pod.key) and _manifest_spec(pod.spec) != _manifest_spec(old.spec):
        here.replace(pod)
        here.effect.notes["running pods are deleted, and the applied pods that replace them are scheduled"] = None
    else:
        spec = replace(pod.spec, node_name=old.spec.node_name)
        here.update(replace(pod, metadata=merged_metadata(pod.metadata, old.metadata), spec=spec, status=old.status))


def _manifest_spec(spec: PodSpec) -> PodSpec:
    """Return an admitted spec without its node, and what the service account adds, which manifests rarely contain."""
    volumes = tuple(volume for volume in spec.volumes if not volume.name.startswith(API_TOKEN))
    return replace(spec, node_name="", service_account_name="", volumes=volumes)


def _count(what: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or whole_number(text) > MAX_ADDED:
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
    apply: Callable[[Change, ChangedCluster], None]
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
    "priority": _Kind("WORKLOAD:NUMBER|CLASS", _priority),
    "apply": _Kind("", _apply, "FILE"),
}
"""The kinds of changes, by name."""
