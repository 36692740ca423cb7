"""Derive which plugin rejected nodes from the reasons in the scheduler's messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from bayplan.analysis.reasons import reasons_of

_PLUGINS = tuple(
    (re.compile(pattern), plugin)
    for pattern, plugin in (
        (r"Insufficient |Too many pods", "NodeResourcesFit"),
        (r"had untolerated taint", "TaintToleration"),
        (r"didn't match Pod's node affinity", "NodeAffinity"),
        (r"were unschedulable", "NodeUnschedulable"),
        (r"topology spread constraints", "PodTopologySpread"),
        (r"pod affinity|pod anti-affinity|existing pods anti-affinity", "InterPodAffinity"),
        (r"didn't have free ports", "NodePorts"),
        (r"didn't match the requested node name", "NodeName"),
        (r"exceed max volume count", "NodeVolumeLimits"),
        (r"no available volume zone", "VolumeZone"),
        (r"volume node affinity conflict|persistent volumes? to bind|persistentvolumeclaim", "VolumeBinding"),
        (r"GPUs", "GPU sharing"),
    )
)

OTHER = "other plugins"


def plugin_of(reason: str) -> str:
    """Return the plugin that a rejection reason comes from, or `OTHER` if the reason is unknown."""
    return next((plugin for pattern, plugin in _PLUGINS if pattern.search(reason)), OTHER)


def rejections_by_plugin(messages: Iterable[str]) -> Counter[str]:
    """Count the nodes that each plugin rejected, according to the messages of failed attempts."""
    found: Counter[str] = Counter()
    for message in messages:
        for reason in reasons_of(message):
            found[plugin_of(reason.text)] += max(reason.nodes, 1)
    return found
