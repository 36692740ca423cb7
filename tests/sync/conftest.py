"""Runs the sync tests twice: with a request for each write, and with batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sync.world import LocalCluster


@pytest.fixture(scope="package", params=[False, True], ids=["requests", "batches"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set whether the cluster here accepts batches. Modules that sync without declaring it themselves use it."""
    LocalCluster.takes_batches = request.param
    yield
    LocalCluster.takes_batches = False
