"""Run each sync test twice: with one request for each write, and with batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sync.follower_fixture import LocalCluster


@pytest.fixture(scope="package", params=[False, True], ids=["requests", "batches"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set whether the target accepts batches; modules of tests request this fixture with ``usefixtures``."""
    LocalCluster.supports_batches = request.param
    yield
    LocalCluster.supports_batches = False
