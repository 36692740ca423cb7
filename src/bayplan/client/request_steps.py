"""Requests in which each depends on the response to the previous one, as generators without sockets and clock.

Such a generator yields requests, whose responses are sent in, and numbers of seconds to wait. It returns its result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TypeAlias, TypeVar

from bayplan.client.requests import ApiRequest, ApiResponse

T = TypeVar("T")
RequestSteps: TypeAlias = Generator[ApiRequest | float, ApiResponse, T]


async def drive(
    steps: RequestSteps[T],
    send: Callable[[ApiRequest], Awaitable[ApiResponse]],
    sleep: Callable[[float], Awaitable[None]],
) -> T:
    """Send the requests of a generator and wait for its pauses; return its result.

    Args:
        steps: the generator.
        send: sends a request, and returns the response, with status `NO_ANSWER` if there was none.
        sleep: waits for a number of seconds.
    """
    try:
        step = next(steps)
        while True:
            if isinstance(step, float):
                await sleep(step)
                step = next(steps)
            else:
                step = steps.send(await send(step))
    except StopIteration as end:
        result: T = end.value
        return result
