"""Describe why filters exclude nodes, in terms of the pod and the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bayplan.analysis.device_claims import unallocated_claims
from bayplan.analysis.filter_matrix import CORDON, FIT, LOAD, NODE_AFFINITY, TAINTS, VOLUME_FILTERS, FilterMatrix
from bayplan.analysis.near_spellings import existing_values
from bayplan.analysis.node_groups_text import NodeGroups, term_text
from bayplan.analysis.node_taints import condition_of, reserving_taints, taint_text, untolerated_taints
from bayplan.analysis.reason_counts import largest_first, reason_counts
from bayplan.analysis.shortage import shortage, shortages
from bayplan.analysis.spread_domains import SpreadDomains, short_label, spread_domains
from bayplan.analysis.surroundings import NoSurroundings, Surroundings
from bayplan.analysis.units import format_amount, format_first, format_list
from bayplan.analysis.volume_places import PlacedVolume, claims_of, placed_volumes, volume_exclusion
from bayplan.base.counted_nouns import is_or_are, plural
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts, node_amounts
from bayplan.objects.selectors import SelectorError, compile_label_selector, selector_text
from bayplan.objects.storage import PersistentVolume
from bayplan.plugins.dynamic_resources.node_filter import CANNOT_ALLOCATE
from bayplan.plugins.inter_pod_affinity import REASON_AFFINITY, REASON_ANTI_AFFINITY
from bayplan.plugins.node_affinity import REASON_ENFORCED
from bayplan.state.arrays import Bools
from bayplan.state.resource_table import PODS

SHOWN = 3
"""Maximum number of labels, taints or reasons in a sentence."""

SPREAD = "PodTopologySpread"
POD_AFFINITY = "InterPodAffinity"

ADDED_AFFINITY = "addedAffinity"
"""The argument of NodeAffinity that adds an affinity to all pods."""

_HOSTNAME = "kubernetes.io/hostname"
_SPREAD_SHARE = 3
"""PodTopologySpread is the main cause if it rejects at least one in N of the usable nodes, such as one of three zones."""


_NAMED_KINDS = {
    "persistentvolumeclaim": "PersistentVolumeClaim",
    "persistentvolume": "PersistentVolume",
    "storageclass.storage.k8s.io": "StorageClass",
    "resourceclaim": "ResourceClaim",
    "deviceclass": "DeviceClass",
}
"""Kinds of the objects in messages such as ``persistentvolumeclaim "x" not found``, by the first word of the message."""


class Clause(NamedTuple):
    """A cause as text, for the summary sentence.

    Attributes:
        text: the cause.
        nearest: the shortage of the nearest node; "" unless resources are short.
        others: why the pod can't use the nodes that the text does not mention; "" if there are none.
    """

    text: str
    nearest: str = ""
    others: str = ""


class CauseWords:
    """Describes why filters reject all nodes.

    Args:
        matrix, pod, nodes, requests, surroundings: see `bayplan.analysis.root_cause.root_cause`.

    Attributes:
        usable: bool[nodes], the nodes that no filter outside `LOAD` rejects.
    """

    def __init__(
        self,
        matrix: FilterMatrix,
        pod: Pod,
        nodes: Mapping[str, Node],
        requests: Amounts,
        surroundings: Surroundings | None,
    ) -> None:
        self._matrix = matrix
        self._pod = pod
        self._by_name = nodes
        self._nodes = [nodes[name] for name in matrix.nodes if name in nodes]
        self._requests = requests
        self._groups = NodeGroups(matrix, pod, nodes)
        self._around: Surroundings = surroundings or NoSurroundings()
        self.usable: Bools = (matrix.pinned_failures == 0) & matrix.known

    # --- the main cause -----------------------------------------------------------------------------------------------

    def leading(self, everywhere: Sequence[str]) -> Clause:
        """Return the main cause. `everywhere`: the filters that reject every node, the hardest to resolve first."""
        lead = everywhere[0] if everywhere else ""
        if not self._matrix.nodes and not lead:
            return Clause("the input has no nodes" if "Node" in self._around.unread else "the cluster has no nodes")
        if lead in self._matrix.whole:
            return Clause(self._whole(lead))
        if lead and lead not in LOAD:
            return (self._of_selected() if lead in (TAINTS, CORDON) else None) or Clause(self.of(lead))
        found = Clause(self._reserved()) if FIT not in everywhere else Clause("")
        if found.text:
            return found
        if FIT in everywhere and (text := self._too_large(self._matrix.known)):
            return Clause(text)
        if self.usable.any():
            return self._of_usable()
        return (
            self._volume_nodes()
            or self._of_selected()
            or Clause(f"no node accepts it: {self._excluded(self._matrix.known)}")
        )

    def of(self, plugin: str) -> str:
        """Return why a filter rejects every node."""
        if plugin in self._matrix.whole:
            return self._whole(plugin)
        texts: dict[str, Callable[[], str]] = {
            NODE_AFFINITY: self._labels,
            TAINTS: self._taints,
            CORDON: lambda: "every node is cordoned",
            "VolumeBinding": self._volumes,
            "VolumeZone": self._volumes,
        }
        if plugin == "DynamicResources" and set(self._matrix.reasons(plugin)) == {CANNOT_ALLOCATE}:
            return unallocated_claims(self._around)
        found = texts[plugin]() if plugin in texts else ""
        return found or f"{plugin} rejects every node: {self._reasons(plugin, self._matrix.known)}"

    def also(self, texts: Sequence[str]) -> str:
        """Return the distinct texts after the first as ``also A and B``; "" if there are none."""
        others = [text for text in dict.fromkeys(texts[1:]) if text != texts[0]]
        return f"also {format_first(others, SHOWN)}" if others else ""

    def _whole(self, plugin: str) -> str:
        """Return why a plugin rejects the pod on every node, or that this is unknown because the input lacks a kind."""
        message = self._matrix.whole[plugin].message or f"{plugin} rejects it"
        # Without the name of the pod, so that equal causes have equal words.
        message = message.removeprefix(f'pod "{self._pod.key}": ')
        name = message.removeprefix("waiting for ").removeprefix("could not find ").split(" ", 1)[0].lower()
        kind = _NAMED_KINDS.get(name, "")
        if kind in self._around.unread and ("not found" in message or "not find" in message):
            return self._unknown(kind, message)
        return message

    def _unknown(self, kind: str, message: str) -> str:
        return f"it is unknown why: the input has no {plural(kind, 0)}; without them, the scheduler reports: {message}"

    # --- the nodes that the pod may use -------------------------------------------------------------------------------

    def _of_usable(self) -> Clause:
        """Return why the usable nodes (see `usable`) reject the pod."""
        matrix, rows = self._matrix, self.usable
        failing = {
            name: int((matrix.failing[number] & rows).sum())
            for number, name in enumerate(matrix.filters)
            if name in LOAD
        }
        count = int(rows.sum())
        full = [name for name in LOAD if failing.get(name) == count]
        others = self._others(rows)
        if POD_AFFINITY in matrix.everywhere and (text := self._pod_affinity(matrix.known)):
            return Clause(text)
        if POD_AFFINITY in full and (text := self._pod_affinity(rows)):
            return Clause(text, others=others)
        if failing.get(SPREAD, 0) * _SPREAD_SHARE >= count and FIT not in full:
            found = self._spread(rows)
            if found:
                return Clause(found)
        if "NodePorts" in full and (ports := host_ports_of(self._pod)):
            taken = f"host {plural('port', len(ports))} {', '.join(map(str, ports))}"
            where = self._groups.every(rows).rstrip(",")
            return Clause(f"{taken} {is_or_are(len(ports))} taken on {where}", others=others)
        if FIT in full:
            if text := self._too_large(rows):
                return Clause(text, others=others)
            return Clause(
                f"{self._groups.none_of(rows, 'has', 'room')}: {self._reasons(FIT, rows)}", self._nearest(rows), others
            )
        return Clause(
            f"{self._groups.none_of(rows, 'accepts', 'it')}: {self._excluded(rows)}", self._nearest(rows), others
        )

    def _others(self, rows: Bools) -> str:
        """Return why the pod can't use the other nodes; each counts once, for the first filter outside `LOAD` that rejects it.

        "" if there are no other nodes, or if the pod does not select any of them.
        """
        rest = self._matrix.known & ~rows
        count = int(rest.sum())
        if not count or (self._groups.selection and bool((rows == self._groups.selected()).all())):
            return ""
        # These nodes are excluded whatever pods leave, so that a full node in the wrong zone counts for its zone.
        found = self._exclusions(rest, skip=LOAD)
        why = reason_counts(found) if len(found) > 1 else next(iter(found), "")
        return f"the other {f'{count:,} are' if count > 1 else 'node is'} excluded: {why}"

    def _nearest(self, rows: Bools) -> str:
        """Describe the smallest shortage among the given nodes that only NodeResourcesFit rejects; "" if there is none."""
        matrix = self._matrix
        if FIT not in matrix.filters or not self._requests:
            return ""
        short = rows & matrix.failing[matrix.filters.index(FIT)] & (matrix.failing.sum(axis=0) == 1)
        names = [matrix.nodes[row] for row in np.flatnonzero(short).tolist()]
        free = self._around.free(names)
        best = min(
            (name for name in names if name in free), key=lambda name: (self._shortage(free[name]), name), default=""
        )
        if not best:
            return ""
        gaps = shortages(self._requests, free[best])
        if not gaps:
            return ""
        text = f"lacks {' and '.join(f'{format_amount(name, amount)} {name}' for name, amount in gaps.items())}"
        return f"it {text}" if int(rows.sum()) == 1 else f"nearest is {best}, which {text}"

    def _shortage(self, free: Amounts) -> int:
        return shortage(self._requests | {PODS: 1}, free)

    def _too_large(self, rows: Bools) -> str:
        """Return which requests exceed the allocatable amount of each of the given nodes; "" if none does."""
        texts = []
        nodes = self._groups.at(rows)
        for resource, wanted in self._requests.items():
            if resource == PODS or not wanted:
                continue
            largest = max((node_amounts(node.status.allocatable).get(resource, 0) for node in nodes), default=0)
            if largest >= wanted:
                continue
            asks = f"it requests {format_amount(resource, wanted)} {resource}"
            if not largest:
                texts.append(f"{asks}, which {self._groups.none_of(rows, '', '').strip()} offers")
            elif len(nodes) == 1:
                texts.append(f"{asks}, but {self._groups.only(rows)}, offers {format_amount(resource, largest)}")
            else:
                of = self._groups.suffix(rows)
                which = f"the largest of the {len(nodes):,} nodes{of}" if of else "the largest node"
                texts.append(f"{asks}, but {which} offers {format_amount(resource, largest)}")
        return "; ".join(texts)

    def _reserved(self) -> str:
        """Return a sentence if only nodes with untolerated taints offer a device that the pod requests; else ""."""
        for resource, taints in reserving_taints(self._pod, self._requests, self._nodes).items():
            texts = [taint_text(taint) for taint in taints]
            amount = f"{format_amount(resource, self._requests[resource])} {resource}"
            only = f"only nodes with the {plural('taint', len(texts))} {' and '.join(texts)} offer"
            return f"it requests {amount}, which {only}; the pod does not tolerate {'them' if texts[1:] else 'it'}"
        return ""

    # --- the nodes that the pod selects -------------------------------------------------------------------------------

    def _of_selected(self) -> Clause | None:
        """Return why the nodes that the pod selects reject it; None if it selects all nodes or none."""
        rows = self._groups.selected()
        if not rows.any() or rows.all():
            return None
        found = self._exclusions(rows)
        if len(found) != 1:
            return Clause(f"{self._groups.none_of(rows, 'accepts', 'it')}: {reason_counts(found)}")
        reason = next(iter(found))
        every, one = self._groups.every(rows), int(rows.sum()) == 1
        if reason in ("cordoned", *(condition_of(self._pod, node) for node in self._groups.at(rows))):
            return Clause(f"{every} {'is' if one else 'are'} {reason}")
        if reason.startswith("taint "):
            return Clause(f"{every} {'has' if one else 'have'} the {reason}, which it does not tolerate")
        if reason == self._added():
            return Clause(f"{reason} excludes {every.rstrip(',')}")
        return Clause(f"{self._groups.none_of(rows, 'accepts', 'it')}: {reason_counts(found)}")

    # --- which filter rejects which nodes -----------------------------------------------------------------------------

    def _exclusions(self, rows: Bools, skip: Collection[str] = ()) -> dict[str, int]:
        """Map each cause of exclusion to its number of nodes; a node counts once, for its first failing filter not in `skip`."""
        matrix, counts = self._matrix, dict[str, int]()
        for row in np.flatnonzero(rows).tolist():
            for number, name in enumerate(matrix.filters):
                if name not in skip and name not in matrix.whole and matrix.failing[number, row]:
                    text = self._exclusion(name, row)
                    counts[text] = counts.get(text, 0) + 1
                    break
        return dict(largest_first(counts))

    def _exclusion(self, plugin: str, row: int) -> str:
        node = self._by_name.get(self._matrix.nodes[row])
        if plugin == TAINTS and node is not None:
            return self._taints_of(node)
        if plugin == CORDON:
            return "cordoned"
        status = self._matrix.status(plugin, row)
        reasons = status.reasons if status is not None else ()
        if plugin == NODE_AFFINITY:
            return self._added() if REASON_ENFORCED in reasons else self._groups.rule_against(node)
        if plugin in VOLUME_FILTERS and node is not None:
            far = volume_exclusion(self._bound, node.metadata.name)
            if far:
                return far
        return " and ".join(reasons) or (status.message if status is not None else "") or plugin

    def _added(self) -> str:
        """Return the node affinity that the scheduler's configuration adds to all pods, in words."""
        added = self._around.added_affinity
        terms = " or ".join(term_text(each) for each in added.node_selector_terms) if added is not None else ""
        return f"the scheduler's configuration ({ADDED_AFFINITY}{': ' if terms else ''}{terms})"

    def _excluded(self, rows: Bools) -> str:
        return reason_counts(self._exclusions(rows))

    def _reasons(self, plugin: str, rows: Bools) -> str:
        """Return the reasons with which a filter rejects the given nodes, as text with counts."""
        matrix = self._matrix
        number, seen = matrix.filters.index(plugin), dict[str, int]()
        for row in np.flatnonzero(matrix.failing[number] & rows).tolist():
            status = matrix.status(plugin, row)
            for reason in (status.reasons or (status.message,)) if status is not None else ():
                seen[reason] = seen.get(reason, 0) + 1
        return reason_counts(dict(largest_first(seen))) if seen else plugin

    # --- labels -------------------------------------------------------------------------------------------------------

    def _labels(self) -> str:
        wanted = self._pod.spec.node_selector or {}
        selected = self._groups.selected()
        if selected.any():
            # The pod's own rules allow some node, so the rule is in the configuration.
            what = f"{self._added()} excludes {self._groups.every(selected).rstrip(',')}"
            return what if self._groups.selection else f"{self._added()} excludes every node"
        missing = {
            key: [value]
            for key, value in wanted.items()
            if not any(node.metadata.labels.get(key) == value for node in self._nodes)
        }
        if missing:
            shown = ", ".join(f"{key}={wanted[key]}" for key in [*missing][:SHOWN])
            values = existing_values(missing, self._nodes)
            return f"no node has the {plural('label', len(missing))} {shown} (nodeSelector{values})"
        terms = self._groups.terms()
        impossible = [self._groups.unmet(term) for term in terms]
        if terms and all(impossible):
            values = existing_values(self._groups.unmet_values(terms), self._nodes)
            return f"no node matches {' or '.join(dict.fromkeys(impossible))} (required node affinity{values})"
        parts = [f"{key}={value}" for key, value in wanted.items()]
        parts += [" or ".join(term_text(term) for term in terms)] if terms else []
        return f"no node matches all of {', '.join(parts)}" if parts else ""

    # --- taints -------------------------------------------------------------------------------------------------------

    def _taints(self) -> str:
        known = self._matrix.known
        found: dict[str, int] = {}
        for text in map(self._taints_of, self._groups.at(known)):
            found[text] = found.get(text, 0) + 1
        if not found:
            return ""
        counts = dict(largest_first(found))
        if all(text.startswith("taint") for text in found):
            return f"every node has a taint that it does not tolerate: {reason_counts(counts, 'taint ')}"
        if len(found) == 1:
            return f"{self._groups.every(known)} {'is' if known.sum() == 1 else 'are'} {next(iter(found))}"
        return f"no node accepts it: {reason_counts(counts)}"

    def _taints_of(self, node: Node) -> str:
        """Return the condition for which a node rejects the pod or, without one, its untolerated taints."""
        if ill := condition_of(self._pod, node):
            return ill
        taints = [taint_text(each) for each in untolerated_taints(self._pod, node)]
        return f"{plural('taint', len(taints))} {format_list(taints[:SHOWN])}" if taints else "taints"

    # --- other pods ---------------------------------------------------------------------------------------------------

    def _pod_affinity(self, rows: Bools) -> str:
        """Describe the pod affinity or anti-affinity term that rejects the given nodes; "" unless there is one term and reason."""
        matrix, affinity = self._matrix, self._pod.spec.affinity
        reasons: set[str] = set()
        for row in np.flatnonzero(rows).tolist():
            status = matrix.status(POD_AFFINITY, row)
            reasons.update(status.reasons if status is not None else ())
        if affinity is None or len(reasons) != 1:
            return ""
        side = affinity.pod_affinity if reasons == {REASON_AFFINITY} else affinity.pod_anti_affinity
        terms = side.required_during_scheduling_ignored_during_execution if side is not None else ()
        if len(terms) != 1 or not reasons & {REASON_AFFINITY, REASON_ANTI_AFFINITY}:
            return ""
        key, pods = terms[0].topology_key, selector_text(terms[0].label_selector)
        nodes, suffix = self._groups.at(rows), self._groups.suffix(rows)
        domains = sorted({text for node in nodes if (text := node.metadata.labels.get(key))})
        if reasons == {REASON_AFFINITY}:
            if not domains:
                return f"{self._groups.none_of(rows, '', '')} has the label {key}, which its pod affinity needs"
            wanted = f"it requires a pod with {pods}"
            if key == _HOSTNAME:
                return f"{wanted} on its node, and {self._groups.none_of(rows, '', '')} has one"
            of = f" of the {len(nodes):,} nodes{suffix}" if suffix else ""
            return f"{wanted} in its {short_label(key)}, and no {short_label(key)}{of} has one"
        try:
            is_own = compile_label_selector(terms[0].label_selector).matches(self._pod.metadata.labels)
        except SelectorError:
            return ""
        place = "node" if key == _HOSTNAME else short_label(key)
        rule = f"allows one pod with {pods} per {place}" if is_own else f"excludes each {place} with a pod with {pods}"
        if key == _HOSTNAME:
            each = f"{self._groups.every(rows).rstrip(',')} {'has' if len(nodes) == 1 else 'have'}"
        else:
            of = (
                domains[0]
                if len(domains) == 1
                else f"each {place if len(domains) > SHOWN else f'of {format_list(domains)}'}"
            )
            each = f"{of} has"
        return f"its anti-affinity {rule}, and {each} one"

    def _spread(self, rows: Bools) -> str:
        """Describe the spread constraint that rejects the most of the given nodes, and why the nodes that it admits don't fit.

        Return "" if there is no hard constraint, or the recorded rejections differ from the computed ones.
        """
        matrix = self._matrix
        rejected = matrix.failing[matrix.filters.index(SPREAD)]
        found = spread_domains(self._pod, self._nodes, self._around.placed())
        by_row = [self._by_name.get(name) for name in matrix.nodes]
        if not found or any(node is None for node in by_row):
            return ""
        computed: list[Bools] = [
            np.array([node is not None and each.rejects(node) for node in by_row], dtype=np.bool_) for each in found
        ]
        if not bool((np.logical_or.reduce(computed) == rejected)[matrix.known].all()):
            # The record disagrees with the computed counts, for example because a configuration is unknown.
            return ""
        number = max(range(len(found)), key=lambda place: int((computed[place] & rows).sum()))
        return self._spread_over(found[number], ~computed[number] & matrix.known, rows)

    def _spread_over(self, domains: SpreadDomains, admitted: Bools, rows: Bools) -> str:
        key = domains.constraint.topology_key
        if not any(key in node.metadata.labels for node in self._groups.at(rows)):
            return f"{self._groups.none_of(rows, '', '')} has the label {key}, over which it is spread"
        counts = domains.text()
        counted = np.array([self._counts(domains, name) for name in self._matrix.nodes], dtype=np.bool_)
        # The pod can use no node in a domain that is not counted.
        admitted = admitted & counted if bool((admitted & counted).any()) else admitted
        where = domains.admitting(self._groups.at(admitted))
        if not where:
            return f"{counts}, so no {domains.noun} can take it"
        return f"{counts}, so only {where} can take it, but the nodes there are excluded: {self._excluded(admitted)}"

    def _counts(self, domains: SpreadDomains, name: str) -> bool:
        node = self._by_name.get(name)
        return node is not None and domains.domain_of(node) in domains.counts

    # --- volumes ------------------------------------------------------------------------------------------------------

    @cached_property
    def _bound(self) -> list[PlacedVolume]:
        """The known volumes to which claims of the pod are bound."""
        return placed_volumes(self._pod, self._around, self._nodes)

    def _volume_nodes(self) -> Clause | None:
        """Return why the nodes that can reach a volume of the pod reject it; None if its volumes do not restrict the nodes."""
        for claim, where, near in self._bound:
            if not where or len(near) == len(self._nodes) or not near:
                continue
            its = f"its volume {claim} is {where}"
            rows = np.isin(np.array(self._matrix.nodes), list(near))
            if len(near) == 1:
                (name, node), *_ = near.items()
                subject = ", which" if name in where else f"; the only node there, {name},"
                return Clause(f"{its}{subject} {self._state(node, rows)}")
            return Clause(f"{its}, and no node there accepts it: {self._excluded(rows)}")
        return None

    def _state(self, node: Node, rows: Bools) -> str:
        """Return why a node rejects the pod: its condition if a taint shows one, else the causes of `_exclusions`."""
        if ill := condition_of(self._pod, node):
            return f"is {ill}"
        return f"rejects it: {', '.join(self._exclusions(rows))}"

    def _volumes(self) -> str:
        for bound in self._bound:
            if not bound.nodes:
                place = f"is {bound.where}; no node is there" if bound.where else "can be reached from no node"
                return f"its volume {bound.claim} {place}"
        if "PersistentVolume" in self._around.unread:
            for claim in claims_of(self._pod, self._around):
                name = claim.spec.volume_name
                if name and self._around.get(PersistentVolume, name) is None:
                    return self._unknown("PersistentVolume", f"{claim.metadata.name} is bound to {name}")
        return ""


def host_ports_of(pod: Pod) -> list[int]:
    """Return the host ports that a pod requests."""
    return sorted({port.host_port for each in pod.spec.containers for port in each.ports if port.host_port})
