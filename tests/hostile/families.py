"""All families of hostile scenarios by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.hostile import expressions, objects, patches
from tests.hostile.scenario import Draws, Family, Scenario

FAMILIES: Mapping[str, Family] = {
    "device selectors": expressions.device_selectors,
    "patterns of schemas": expressions.schema_patterns,
    "rules of schemas": expressions.schema_rules,
    "deep schemas": expressions.deep_schemas,
    "JSON patches": patches.json_patches,
    "merge patches": patches.merge_patches,
    "strategic patches": patches.strategic_patches,
    "applied lists": patches.applied,
    "applied maps": patches.applied_maps,
    "broken patches": patches.broken,
    "wide pods": objects.wide_pods,
    "metadata": objects.metadata,
    "amounts": objects.amounts,
    "schedules": objects.schedules,
    "selectors": objects.selectors,
    "YAML": objects.yaml_bodies,
    "JSON": objects.json_bodies,
    "protobuf": objects.protobuf_bodies,
    "subresources": objects.statuses,
    "headers": objects.headers,
}


def scenarios(seed: int, scale: float, only: str = "") -> Iterator[tuple[str, Scenario]]:
    """Yield scenarios of all families in turn, without end.

    Args:
        seed: The seed of all random choices.
        scale: The scale of sizes, see `Draws`.
        only: Only families whose name contains this text are used.
    """
    turn = 0
    while True:
        for name, family in FAMILIES.items():
            if only in name:
                yield name, family(Draws(f"{seed}/{name}/{turn}", scale))
        turn += 1
