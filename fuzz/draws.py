"""Random choices of one case, from small vocabularies, so that names and values match often."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

NAMESPACES = ("default", "shop", "batch")
APPS = ("a", "b", "c")
PRIORITIES = (-5, 0, 0, 5, 10, 1000)
TOPOLOGY_KEYS = (HOSTNAME, ZONE, ZONE, REGION, "rack", "missing")
IMAGES = ("registry.example/a:v1", "registry.example/b:v2", "registry.example/c", "d@sha256:" + "0" * 64)
EXTENDED = ("example.com/gpu", "example.com/fpga")
DRIVERS = ("gpu.example.com", "nic.example.com", "net.example.com")
DEVICE_CLASSES = ("gpu", "fast", "any")

CPU = ("0", "1m", "100m", "250m", "0.5", "500m", "1", "1500m", "2", "0.1", "1e0", "3")
MEMORY = ("0", "1", "64Mi", "100M", "256Mi", "0.5Gi", "1Gi", "1G", "1536Mi", "2Gi", "1.5e9", "128974848", "123456789k")
NODE_CPU = ("1", "2", "3500m", "4", "8", "8", "16", "3920m")
NODE_MEMORY = ("1Gi", "2Gi", "4Gi", "8Gi", "16Gi", "7500Mi", "3G", "15872Ki")

FEATURES = (
    "taints",
    "node_affinity",
    "pod_affinity",
    "spread",
    "ports",
    "images",
    "requests",
    "extended",
    "priority",
    "nominated",
    "crowded",
    "volumes",
    "devices",
    "partitions",
    "shared_devices",
    "owners",
    "namespaces",
    "configuration",
    "odd",
)
"""Topics of cases. Each case has some of them, so that they occur in many combinations."""


THEMES = (
    ("volumes",),
    ("volumes",),
    ("devices",),
    ("devices", "shared_devices"),
    ("devices", "partitions", "taints"),
    ("crowded", "priority", "requests"),
    ("crowded", "nominated"),
    ("spread", "owners"),
    ("pod_affinity", "namespaces"),
)
"""Combinations of topics to which many cases are limited, so that pods find nodes and later plugins run."""


class Draws(Random):
    """A random stream with helpers for generating clusters, and with the features of its case."""

    features: frozenset[str] = frozenset()

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self.random() < probability

    def has(self, feature: str, probability: float = 1.0) -> bool:
        """Return whether the case has a feature, and then True with this probability."""
        return feature in self.features and self.chance(probability)

    def one(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return choices[self.randrange(len(choices))]

    def some(self, choices: Sequence[T], most: int = 3, least: int = 0) -> list[T]:
        """Return `least` to `most` different choices in random order."""
        return self.sample(list(choices), min(self.randint(least, most), len(choices)))

    def choose_features(self) -> None:
        """Choose the features of the case."""
        theme = self.one(THEMES) if self.chance(0.4) else ()
        share = 0.05 if theme else self.one((0.06, 0.15, 0.3, 0.5, 0.8))
        self.features = frozenset(feature for feature in FEATURES if feature in theme or self.chance(share))
