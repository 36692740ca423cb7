"""The feature gates of Kubernetes 1.16 that affect decisions of the classic scheduler."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import ConfigurationError
from bayplan.framework.feature_gates import parse_feature_gates

OTHER_GATES = frozenset(
    (
        "AllAlpha",
        "CSIMigration",
        "CSINodeInfo",
        "LocalStorageCapacityIsolation",
        "PersistentLocalVolumes",
        "PodPriority",
        "ScheduleDaemonSetPods",
        "VolumeSubpath",
    )
)
"""Gates that exist but affect no decision: they can be set, but only to the value that Bayplan assumes."""

_DEFAULTS_OF_OTHERS = {"AllAlpha": False, "CSIMigration": False}


class ClassicGates(msgspec.Struct, frozen=True, kw_only=True):
    """The feature gates, with their defaults in v1.16. The names are upstream's, in snake case."""

    taint_nodes_by_condition: bool = True
    attach_volume_limit: bool = True
    even_pods_spread: bool = False
    resource_limits_priority_function: bool = False
    non_preempting_priority: bool = False
    pod_overhead: bool = False
    balance_attached_node_volumes: bool = False

    @classmethod
    def from_mapping(cls, values: Mapping[str, bool], *, where: str = "") -> ClassicGates:
        """Return gates with these values, given by upstream's names; the others have their defaults.

        Raises:
            ConfigurationError: a gate is unknown, or can't be set to this value.
        """
        return cls().changed(values, where=where)

    @classmethod
    def from_text(cls, text: str, *, where: str = "") -> ClassicGates:
        """Return gates with the values of a ``--feature-gates`` option: ``A=true,B=false``."""
        return cls.from_mapping(parse_feature_gates(text, where=where), where=where)

    def changed(self, values: Mapping[str, bool], *, where: str = "") -> ClassicGates:
        """Return these gates with other values of some of them; arguments as for `from_mapping`.

        Raises:
            ConfigurationError: see `from_mapping`.
        """
        names = {_upstream_name(field): field for field in self.__struct_fields__}
        changes = {}
        for name, on in values.items():
            if name in names:
                changes[names[name]] = on
            elif name not in OTHER_GATES:
                raise ConfigurationError(f"unrecognized feature gate: {name}", where=where)
            elif on != _DEFAULTS_OF_OTHERS.get(name, True):
                raise ConfigurationError(
                    f"feature gate {name}",
                    where=where,
                    got=str(on).lower(),
                    wanted=f"{str(not on).lower()}, the only value that classic mode supports",
                )
        return replace(self, **changes)


def _upstream_name(field_name: str) -> str:
    return "".join(part.capitalize() for part in field_name.split("_"))
