"""All pages together are the whole list, for each page size and each list of the HTTP API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http_api.server_fixture import ServerFixture, node, pod, run

LISTS = ("/nodes", "/pods", "/queue", "/pods/default/huge-0/attempts", "/pods/default/a-0/attempts/latest/matrix")


@pytest.mark.parametrize("limit", [1, 3, 7, 200])
def test_concatenated_pages_equal_the_list(limit: int) -> None:
    async def test(fixture: ServerFixture) -> None:
        # Nothing may change between the requests for pages.
        fixture.server.clock.pause()
        for path in LISTS:
            whole = await _items(fixture, path, 0, 200)
            assert whole
            pages: list[Any] = []
            while page := await _items(fixture, path, len(pages), limit):
                pages += page
                assert len(page) <= limit
            assert pages == whole, path

    run(test, *(node(f"n{number}") for number in range(5)), *_pods())


async def _items(fixture: ServerFixture, path: str, offset: int, limit: int) -> list[Any]:
    answer = await fixture.get(path, offset=offset, limit=limit)
    assert answer["total_is_exact"]
    items: list[Any] = answer.get("items", answer.get("rows"))
    assert offset >= answer["total"] or items
    # `why` contains the lead over other nodes only if there was time to compute it.
    return [{name: value for name, value in item.items() if name != "why"} for item in items]


@pytest.mark.parametrize("limit", [1, 4, 200])
def test_decisions_are_paged_by_number_in_both_directions(limit: int) -> None:
    async def test(fixture: ServerFixture) -> None:
        count = len(fixture.server.decisions)
        forwards = [0]
        while page := (await fixture.get("/decisions", limit=limit, after=forwards[-1]))["items"]:
            forwards += [item["number"] for item in page]
        assert forwards == list(range(count))
        backwards: list[int] = []
        before = count
        while page := (await fixture.get("/decisions", limit=limit, before=before))["items"]:
            backwards = [item["number"] for item in page] + backwards
            before = page[0]["number"]
        assert backwards == list(range(count))

    run(test, *(node(f"n{number}") for number in range(5)), *_pods())


def _pods() -> list[dict[str, Any]]:
    return [
        *(pod(f"a-{number}") for number in range(9)),
        *(pod(f"huge-{number}", cpu="90") for number in range(4)),
    ]
