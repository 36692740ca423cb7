"""All tests run twice: with a request for each write, and with batches, as a Bayplan takes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sync.world import Here


@pytest.fixture(scope="package", autouse=True, params=[False, True], ids=["requests", "batches"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say whether the cluster here takes batches."""
    Here.takes_batches = request.param
    yield
    Here.takes_batches = False
