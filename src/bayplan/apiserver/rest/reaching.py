"""The wait of reads for a revision that the store does not have yet."""

from __future__ import annotations

import asyncio

from bayplan.apiserver.rest.backend import Backend

WAIT_FOR_REVISION = 3.0
"""Seconds that a read waits until the store has its revision."""
_WAIT_STEP = 0.05


async def reaches(backend: Backend, revision: int, deadline: float | None = None) -> bool:
    """Wait until the store has a revision, and return whether it has.

    Args:
        backend: the backend of the API.
        revision: the revision.
        deadline: the time of the event loop at which to give up; after `WAIT_FOR_REVISION` seconds at the latest.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + WAIT_FOR_REVISION
    if deadline is not None:
        end = min(end, deadline)
    while backend.store.revision < revision:
        left = end - loop.time()
        if left <= 0:
            return False
        await asyncio.sleep(min(left, _WAIT_STEP))
    return True
