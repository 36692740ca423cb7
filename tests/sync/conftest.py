"""Runs the sync tests twice: with a request for each write, and with batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sync.world import LocalCluster


@pytest.fixture(scope="package", params=[False, True], ids=["requests", "batches"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say whether the cluster here takes batches. Modules that follow something without saying so themselves use it."""
    LocalCluster.takes_batches = request.param
    yield
    LocalCluster.takes_batches = False
