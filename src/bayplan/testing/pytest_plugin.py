"""Bayplan's pytest plugin: fixtures that check whether manifests can be scheduled.

pytest loads it wherever Bayplan is installed, so it imports nothing but pytest until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bayplan.testing.manifest_cluster import ManifestCluster, Outcome

MARKER = "bayplan"

OPTIONS = ("config", "feature_gates", "plugins", "seed")
"""The options of the marker."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings for the initial cluster of tests, and for the scheduler's configuration."""
    parser.addini("bayplan_cluster", "Manifests or dumps of the initial cluster of tests.", type="linelist")
    parser.addini("bayplan_config", "Path of the KubeSchedulerConfiguration of the scheduler.", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*paths, config=None, feature_gates='', plugins=(), seed=0): the cluster of the fixture bayplan_cluster",
    )


@pytest.fixture
def bayplan_cluster(request: pytest.FixtureRequest) -> ManifestCluster:
    """Return the cluster of a test, from its marker or else from the settings. Paths start at pytest's root directory."""
    from bayplan.testing.manifest_cluster import ManifestCluster

    paths: tuple[str, ...] = tuple(request.config.getini("bayplan_cluster"))
    options: dict[str, Any] = {"config": request.config.getini("bayplan_config") or None}
    marker = request.node.get_closest_marker(MARKER)
    if marker is not None:
        paths = marker.args or paths
        _check_options(marker.kwargs)
        options |= marker.kwargs
    return ManifestCluster(*paths, root=request.config.rootpath, **options)


def _check_options(named: Iterable[str]) -> None:
    """Check the names of the marker's options.

    Raises:
        InputError: an option is unknown; the error suggests a similar one.
    """
    from bayplan.base.errors import InputError
    from bayplan.base.near_names import near_name

    for name in named:
        if name not in OPTIONS:
            close = near_name(name, OPTIONS)
            hint = f"{close}=..." if close else ""
            raise InputError(f"marker {MARKER}", got=f"{name}=", wanted=f"the options {', '.join(OPTIONS)}", hint=hint)


@pytest.fixture
def assert_schedulable(bayplan_cluster: ManifestCluster) -> Callable[..., Outcome]:
    """Return an assertion that all pods of the given objects find a node; see `ManifestCluster.assert_schedulable`."""
    return bayplan_cluster.assert_schedulable


@pytest.fixture
def assert_not_schedulable(bayplan_cluster: ManifestCluster) -> Callable[..., Outcome]:
    """Return an assertion that no pod of the given objects finds a node; see `ManifestCluster.assert_not_schedulable`."""
    return bayplan_cluster.assert_not_schedulable
