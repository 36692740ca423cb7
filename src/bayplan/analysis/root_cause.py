"""Why a pod has no feasible node: the filter that rejects every node leads, in words about the pod and the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

import msgspec
import numpy as np

from bayplan.analysis.filter_matrix import CORDON, FIT, LOAD, NODE_AFFINITY, TAINTS, FilterMatrix
from bayplan.analysis.units import format_amount, format_list
from bayplan.objects.affinity import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts, node_amounts
from bayplan.objects.selectors import compile_node_term, selector_text, tolerates
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.plugins.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER
from bayplan.plugins.inter_pod_affinity import REASON_AFFINITY, REASON_ANTI_AFFINITY
from bayplan.plugins.pod_claims import claim_name_of
from bayplan.state.arrays import Bools
from bayplan.state.resource_table import PODS

T = TypeVar("T", bound=KubernetesObject)

REJECTING_EFFECTS = ("NoSchedule", "NoExecute")
SHOWN = 3
"""Maximum number of labels, taints or reasons in a sentence."""

_CONDITION = "node.kubernetes.io/"

_TOPOLOGY = (ZONE, BETA_ZONE, REGION, BETA_REGION)


class Lookup(Protocol):
    """A collection of claims and volumes."""

    def get(self, kind: type[T], key: str) -> T | None:
        """Return an object by its key, or None."""
        ...


class NoObjects:
    """A lookup without objects, for sources that have none."""

    def get(self, kind: type[T], key: str) -> T | None:
        """Return None."""
        return None


class SoleFilter(msgspec.Struct, frozen=True):
    """A filter that alone rejects some nodes: without it, the pod would fit there."""

    plugin: str
    nodes: int


class RootCause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a pod fits on no node.

    Attributes:
        plugin: the filter that leads; "" if no single one rejects every node.
        sentence: why, in words about the pod.
        everywhere: the filters that reject every node, the hardest to resolve first.
        sole: the filters that are the only ones to reject some nodes, those with the most nodes first.
        usable: the number of nodes that only filters about their pods reject: the pod may use them once there is room.
        nodes: the number of all nodes.
        is_specific: whether the sentence names what the cluster lacks, rather than the reasons of a filter.
    """

    plugin: str
    sentence: str
    everywhere: list[str]
    sole: list[SoleFilter]
    usable: int
    nodes: int
    is_specific: bool = False


def root_cause(
    matrix: FilterMatrix, pod: Pod, nodes: Mapping[str, Node], requests: Amounts, lookup: Lookup | None = None
) -> RootCause:
    """Return why a pod fits on no node.

    Args:
        matrix: the matrix of the decision.
        pod: the pod that waits.
        nodes: the nodes of the cluster, by name.
        requests: the requests of the pod.
        lookup: the lookup for claims and volumes, if they are known.
    """
    everywhere = matrix.everywhere
    words = _Words(matrix, pod, nodes, requests, lookup or NoObjects())
    sole = [SoleFilter(plugin, count) for plugin, count in sorted(matrix.sole.items(), key=lambda each: -each[1])]
    usable = int(((matrix.pinned_failures == 0) & matrix.known).sum())
    lead = everywhere[0] if everywhere else ""
    specific = words.specific(lead) if lead else words.reserved()
    sentence = specific or (words.of(lead) if lead else words.of_several(usable))
    also = (words.of(each) for each in everywhere[1:] if each in matrix.whole or lead in LOAD or each not in LOAD)
    others = [text for text in dict.fromkeys(also) if text != sentence]
    if others:
        sentence = f"{sentence}; also {format_list(others[:SHOWN], more=max(0, len(others) - SHOWN))}"
    return RootCause(
        plugin=lead,
        sentence=sentence,
        everywhere=list(everywhere),
        sole=sole,
        usable=usable,
        nodes=len(matrix.nodes),
        is_specific=bool(specific),
    )


class _Words:
    """Describes why a filter rejects all nodes."""

    def __init__(
        self, matrix: FilterMatrix, pod: Pod, nodes: Mapping[str, Node], requests: Amounts, lookup: Lookup
    ) -> None:
        self._matrix = matrix
        self._pod = pod
        self._nodes = [nodes[name] for name in matrix.nodes if name in nodes]
        self._requests = requests
        self._lookup = lookup

    def of(self, plugin: str) -> str:
        """Return the sentence about a filter that rejects every node."""
        if plugin in self._matrix.whole:
            return self._matrix.whole[plugin].message or f"{plugin} rejects it"
        return self.specific(plugin) or self._generic(plugin)

    def _generic(self, plugin: str) -> str:
        if plugin == FIT:
            shown = [f"{reason} ({count:,})" for reason, count in self._matrix.reasons(FIT).items()]
            return f"no node has room: {', '.join(shown[:SHOWN])}"
        return f"{plugin} rejects every node: {self._reasons(plugin)}"

    def specific(self, plugin: str) -> str:
        """Return what the cluster lacks for a filter that rejects every node; "" if only the filter's reasons are known."""
        if plugin in self._matrix.whole:
            return ""
        texts: dict[str, Callable[[], str]] = {
            NODE_AFFINITY: self._labels,
            TAINTS: self._taints,
            CORDON: lambda: "every node is cordoned",
            FIT: self._room,
            "VolumeBinding": self._volumes,
            "VolumeZone": self._volumes,
            "NodePorts": self._ports,
            "InterPodAffinity": self._pod_affinity,
        }
        return texts[plugin]() if plugin in texts else ""

    def of_several(self, usable: int) -> str:
        """Return the sentence about several filters that together reject all nodes."""
        matrix, count = self._matrix, len(self._matrix.nodes)
        if not count:
            return "the cluster has no nodes"
        if usable:
            pinned = (matrix.pinned_failures == 0) & matrix.known
            counts = {
                name: int((matrix.failing[number] & pinned).sum())
                for number, name in enumerate(matrix.filters)
                if name in LOAD
            }
            shown = [
                f"{reason} ({found:,})"
                for name, failed in _largest(counts)
                if failed
                for reason, found in (self._reason_counts(name, pinned) or {self._reasons(name): failed}).items()
            ]
            reasons = ", ".join(shown[:SHOWN])
            if usable == count:
                return f"no node accepts it: {reasons}"
            which = "the only node" if usable == 1 else f"none of the {usable:,} nodes"
            verb = "does not accept it" if usable == 1 else "accepts it"
            rest, excluded = count - usable, self._pinned(~pinned)
            others = f"the other {rest:,} are" if rest > 1 else "the other one is"
            return f"{which} that it may use {verb}: {reasons}; {others} excluded: {excluded}"
        return (
            self._volume_nodes() or f"no node passes all filters; nodes rejected by each: {self._pinned(matrix.known)}"
        )

    def reserved(self) -> str:
        """Return the sentence about a device that only nodes with a taint offer; "" if the pod requests none."""
        for resource, taints in reserving_taints(self._pod, self._requests, self._nodes).items():
            texts = [taint_text(taint) for taint in taints]
            amount = f"{format_amount(resource, self._requests[resource])} {resource}"
            only = f"only nodes with the {_plural('taint', texts)} {' and '.join(texts)} offer"
            return f"it requests {amount}, which {only}; it does not tolerate {'it' if len(texts) == 1 else 'them'}"
        return ""

    def _pinned(self, rows: Bools) -> str:
        matrix = self._matrix
        counts = {
            name: int((matrix.failing[number] & rows).sum())
            for number, name in enumerate(matrix.filters)
            if name not in LOAD
        }
        shown = [f"{self._short(name)} ({found:,})" for name, found in _largest(counts) if found]
        return ", ".join(shown[:SHOWN])

    def _short(self, plugin: str, rows: Bools | None = None) -> str:
        if plugin == TAINTS:
            taints = self._untolerated(rows)
            return f"taint {', '.join(list(taints)[:SHOWN])}" if taints else "taints"
        return {NODE_AFFINITY: "node selector or affinity", CORDON: "cordoned"}.get(plugin) or self._reasons(
            plugin, rows
        )

    def _reasons(self, plugin: str, rows: Bools | None = None) -> str:
        matrix = self._matrix
        if rows is None or plugin in matrix.whole:
            return ", ".join(list(matrix.reasons(plugin))[:SHOWN]) or plugin
        return ", ".join(list(self._reason_counts(plugin, rows))[:SHOWN]) or plugin

    def _reason_counts(self, plugin: str, rows: Bools) -> dict[str, int]:
        """Return the reasons of a filter with the number of these rows that have each, the most frequent first."""
        matrix, seen = self._matrix, dict[str, int]()
        if plugin in matrix.whole:
            return seen
        for row in np.flatnonzero(matrix.failing[matrix.filters.index(plugin)] & rows).tolist():
            status = matrix.status(plugin, row)
            for reason in status.reasons if status is not None else ():
                seen[reason] = seen.get(reason, 0) + 1
        return dict(_largest(seen))

    # --- labels -------------------------------------------------------------------------------------------------------

    def _labels(self) -> str:
        wanted = self._pod.spec.node_selector or {}
        missing = [
            f"{key}={value}"
            for key, value in wanted.items()
            if not any(node.metadata.labels.get(key) == value for node in self._nodes)
        ]
        if missing:
            return f"no node has the {_plural('label', missing)} {', '.join(missing[:SHOWN])} (nodeSelector)"
        terms = self._terms()
        impossible = [self._impossible(term) for term in terms]
        if terms and all(impossible):
            return f"no node has {' or '.join(dict.fromkeys(impossible))} (required node affinity)"
        parts = [f"{key}={value}" for key, value in wanted.items()]
        parts += [" or ".join(_term_text(term) for term in terms)] if terms else []
        return f"no node has all of {', '.join(parts)}" if parts else ""

    def _terms(self) -> tuple[NodeSelectorTerm, ...]:
        affinity = self._pod.spec.affinity.node_affinity if self._pod.spec.affinity is not None else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
        return required.node_selector_terms if required is not None else ()

    def _impossible(self, term: NodeSelectorTerm) -> str:
        """Return the requirements of a term that no node meets by itself; "" if each is met by any node."""
        found = [
            requirement_text(each)
            for each in (*term.match_expressions, *term.match_fields)
            if not any(self._meets(node, each, field=each in term.match_fields) for node in self._nodes)
        ]
        return " and ".join(found)

    def _meets(self, node: Node, requirement: NodeSelectorRequirement, *, field: bool) -> bool:
        term = (
            NodeSelectorTerm(match_fields=(requirement,))
            if field
            else NodeSelectorTerm(match_expressions=(requirement,))
        )
        return compile_node_term(term, "").matches(node.metadata.labels, node.metadata.name)

    # --- taints, room, ports ------------------------------------------------------------------------------------------

    def _taints(self) -> str:
        found = self._untolerated()
        if not found:
            return ""
        shown = [f"{text} ({count:,})" for text, count in found.items()]
        more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
        return f"every node has a taint that it does not tolerate: {', '.join(shown[:SHOWN])}{more}"

    def _untolerated(self, rows: Bools | None = None) -> dict[str, int]:
        counts: dict[str, int] = {}
        names = None if rows is None else {self._matrix.nodes[row] for row in np.flatnonzero(rows).tolist()}
        for node in self._nodes:
            if names is not None and node.metadata.name not in names:
                continue
            for taint in untolerated_taints(self._pod, node):
                text = taint_text(taint)
                counts[text] = counts.get(text, 0) + 1
        return dict(_largest(counts))

    def _room(self) -> str:
        """Return the resource of which no node offers enough even when empty; "" if there is none."""
        for resource, wanted in self._requests.items():
            if resource == PODS or not wanted:
                continue
            offered = [node_amounts(node.status.allocatable).get(resource, 0) for node in self._nodes]
            largest = max(offered, default=0)
            if largest < wanted:
                requested = format_amount(resource, wanted)
                if not largest:
                    return f"it requests {requested} {resource}, which no node offers"
                return f"it requests {requested} {resource}, the largest node offers {format_amount(resource, largest)}"
        return ""

    def _ports(self) -> str:
        ports = host_ports_of(self._pod)
        return f"host {_plural('port', ports)} {', '.join(map(str, ports))} taken on every node" if ports else ""

    # --- other pods ---------------------------------------------------------------------------------------------------

    def _pod_affinity(self) -> str:
        """Return which rule rejects every node, if there is one rule and one reason; "" otherwise."""
        reasons = list(self._matrix.reasons("InterPodAffinity"))
        affinity = self._pod.spec.affinity
        if affinity is None or len(reasons) != 1:
            return ""
        for reason, side in (
            (REASON_AFFINITY, affinity.pod_affinity),
            (REASON_ANTI_AFFINITY, affinity.pod_anti_affinity),
        ):
            terms = side.required_during_scheduling_ignored_during_execution if side is not None else ()
            if reasons != [reason] or len(terms) != 1:
                continue
            key, pods = terms[0].topology_key, selector_text(terms[0].label_selector)
            domains = {text for node in self._nodes if (text := node.metadata.labels.get(key))}
            if reason == REASON_AFFINITY:
                return f"it requires a pod with {pods} in its {key}, and no {key} has one"
            each = key if len(domains) > SHOWN else f"of {format_list(sorted(domains))}"
            return f"its anti-affinity allows one pod with {pods} per {key}, and each {each} has one"
        return ""

    # --- volumes ------------------------------------------------------------------------------------------------------

    def _volume_nodes(self) -> str:
        """Return why the nodes that reach a volume of the pod reject it; "" if its volumes can be reached from anywhere."""
        for claim, volume in bound_volumes(self._pod, self._lookup):
            near = [node for node in self._nodes if _reaches(volume, node)]
            where = volume_place(volume)
            if not where or len(near) == len(self._nodes):
                continue
            its = f"its volume {claim.metadata.name} is {where}"
            if len(near) == 1:
                return f"{its}, which {self._state(near[0])}"
            rows = np.isin(np.array(self._matrix.nodes), [node.metadata.name for node in near])
            counts = {
                name: int((self._matrix.failing[number] & rows).sum())
                for number, name in enumerate(self._matrix.filters)
            }
            shown = [f"{self._short(name, rows)} ({found:,})" for name, found in _largest(counts) if found]
            return f"{its}, and no node there takes it: {', '.join(shown[:SHOWN])}"
        return ""

    def _state(self, node: Node) -> str:
        """Return why a node does not accept the pod."""
        ill = [taint.key for taint in untolerated_taints(self._pod, node) if taint.key.startswith(_CONDITION)]
        if ill:
            return f"is {ill[0].removeprefix(_CONDITION).replace('-', ' ')}"
        row = self._matrix.nodes.index(node.metadata.name)
        failing = [name for number, name in enumerate(self._matrix.filters) if self._matrix.failing[number, row]]
        only = np.arange(len(self._matrix.nodes)) == row
        return f"rejects it: {', '.join(self._short(name, only) for name in failing[:SHOWN])}"

    def _volumes(self) -> str:
        for claim, volume in bound_volumes(self._pod, self._lookup):
            reachable = [node for node in self._nodes if _reaches(volume, node)]
            if reachable:
                continue
            where = volume_place(volume)
            if where:
                return f"its volume {claim.metadata.name} is {where}; no node is there"
            return f"its volume {claim.metadata.name} can be reached from no node"
        return ""


def bound_volumes(pod: Pod, lookup: Lookup) -> list[tuple[PersistentVolumeClaim, PersistentVolume]]:
    """Return the bound claims of a pod with their volumes, that are known."""
    found = []
    for volume in pod.spec.volumes:
        name = claim_name_of(pod.metadata.name, volume)
        claim = lookup.get(PersistentVolumeClaim, f"{pod.metadata.namespace}/{name}") if name else None
        persistent = lookup.get(PersistentVolume, claim.spec.volume_name) if claim and claim.spec.volume_name else None
        if claim is not None and persistent is not None:
            found.append((claim, persistent))
    return found


def volume_labels(volume: PersistentVolume) -> dict[str, str]:
    """Return the labels that a node needs to reach a volume, one value of each: the first of several."""
    found: dict[str, str] = {}
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    for term in required.node_selector_terms[:1] if required is not None else ():
        for each in term.match_expressions:
            if each.operator == "In" and each.values:
                found[each.key] = each.values[0]
    for key in _TOPOLOGY:
        value = volume.metadata.labels.get(key)
        if value and key not in found:
            found[key] = value.split(ZONE_DELIMITER)[0]
    return found


def volume_place(volume: PersistentVolume) -> str:
    """Return the location of a volume, in words: ``in eu-1d``, ``on node-3``; "" if unknown."""
    labels = volume_labels(volume)
    for key in _TOPOLOGY:
        if key in labels:
            return f"in {labels[key]}"
    if "kubernetes.io/hostname" in labels:
        return f"on {labels['kubernetes.io/hostname']}"
    return f"where {', '.join(f'{key}={value}' for key, value in labels.items())}" if labels else ""


def _reaches(volume: PersistentVolume, node: Node) -> bool:
    required = volume.spec.node_affinity.required if volume.spec.node_affinity is not None else None
    if required is not None and not any(
        compile_node_term(term, "").matches(node.metadata.labels, node.metadata.name)
        for term in required.node_selector_terms
    ):
        return False
    for key in _TOPOLOGY:
        values, own = volume.metadata.labels.get(key), node.metadata.labels.get(key)
        if values and own and own not in values.split(ZONE_DELIMITER):
            return False
    return True


# --- helpers for other modules ----------------------------------------------------------------------------------------


def untolerated_taints(pod: Pod, node: Node) -> list[Taint]:
    """Return the taints of a node that keep a pod away."""
    return [
        taint
        for taint in node.spec.taints
        if taint.effect in REJECTING_EFFECTS
        and not any(tolerates(each, taint, comparison_operators=True) for each in pod.spec.tolerations)
    ]


def reserving_taints(pod: Pod, requests: Amounts, nodes: Iterable[Node]) -> dict[str, list[Taint]]:
    """Return, by device that a pod asks for, the taints that it does not tolerate and that reserve the nodes that offer it.

    A taint reserves them if all nodes that offer enough of the device have it, and no other node does. Taints of a
    condition of the node are left out.
    """
    known, found = list(nodes), dict[str, list[Taint]]()
    for resource, wanted in requests.items():
        if "/" not in resource or not wanted:
            continue
        offers = [node_amounts(node.status.allocatable).get(resource, 0) >= wanted for node in known]
        shared: dict[str, Taint] | None = None
        others: set[str] = set()
        for node, is_offered in zip(known, offers, strict=True):
            if not is_offered:
                others.update(map(taint_text, node.spec.taints))
                continue
            taints = untolerated_taints(pod, node)
            own = {taint_text(each): each for each in taints if not each.key.startswith(_CONDITION)}
            shared = own if shared is None else {text: each for text, each in shared.items() if text in own}
        if shared and not others & shared.keys():
            found[resource] = list(shared.values())
    return found


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def requirement_text(requirement: NodeSelectorRequirement) -> str:
    """Return an expression in readable form: ``disk In (ssd, nvme)``."""
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"


def host_ports_of(pod: Pod) -> list[int]:
    """Return the host ports that a pod asks for."""
    return sorted({port.host_port for each in pod.spec.containers for port in each.ports if port.host_port})


def _term_text(term: NodeSelectorTerm) -> str:
    return " and ".join(requirement_text(each) for each in (*term.match_expressions, *term.match_fields))


def _largest(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def _plural(noun: str, items: list[str] | list[int]) -> str:
    return noun if len(items) == 1 else f"{noun}s"
