"""A function that is called at intervals: also after an exception, and not after the end."""

from __future__ import annotations

import asyncio

import pytest

from bayplan.live.ticker import Ticker


def test_calls_continue_after_an_exception_until_the_end(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []
    problems: list[Exception] = []

    def function() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            raise ZeroDivisionError

    async def run() -> int:
        ticker = Ticker(0.001, function, problems.append)
        assert calls == []
        async with asyncio.timeout(10):
            while len(calls) < 3:
                await asyncio.sleep(0.001)
        ticker.stop()
        made = len(calls)
        await asyncio.sleep(0.02)
        return made

    assert asyncio.run(run()) == len(calls)
    assert [(each.getMessage(), each.exc_info is not None) for each in caplog.records] == [
        ("a periodic task failed", True)
    ]
    assert [type(each) for each in problems] == [ZeroDivisionError]
