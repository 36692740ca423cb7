"""A running server as the source of explanations: columns compared with time lines."""

from __future__ import annotations

from bayplan.analysis.free_amounts import requested_by_time_lines
from bayplan.sim.result import PodFate
from tests.http_api.server_fixture import ServerFixture, node, pod, run


def test_requested_amounts_before_a_decision_match_the_time_lines() -> None:
    async def test(fixture: ServerFixture) -> None:
        for batch in range(4):
            size = {"cpu": f"{batch + 1}00m", "memory": f"{batch}Gi"}
            await fixture.create(*(pod(f"p{batch}-{number}", **size) for number in range(6)))
            await fixture.settle()
            for number in range(0, 6, 2):
                path = f"/api/v1/namespaces/default/pods/p{batch}-{number}"
                await fixture.api("DELETE", path, {"gracePeriodSeconds": 0})
            await fixture.create(pod(f"p{batch}-0", cpu="50m"))
            await fixture.settle()
        source = await fixture.service.state.source_of("default/p0-0")
        nodes = {"n1", "n2"}
        some = 0
        for number in range(len(fixture.server.decisions)):
            fast = source.requested_before(number, nodes)
            slow = requested_by_time_lines(source, number, nodes)
            drop = {
                name: {resource: amount for resource, amount in found.items() if amount} for name, found in slow.items()
            }
            assert {name: amounts for name, amounts in fast.items() if amounts} == drop
            some += len(drop)
        assert some > 20

    run(test, node("n1"), node("n2"), node("n3"), pod("fixed", nodeName="n1"))


def test_live_source_records_equal_the_server_records() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("a"), pod("b"))
        await fixture.settle()
        source = await fixture.service.state.source_of("default/a")
        assert list(source.records) == [
            fixture.server.decisions[number] for number in range(len(fixture.server.decisions))
        ]
        assert [number for number, _ in source.records_of("default/b")] == list(
            fixture.server.decisions.numbers_of("default/b")
        )
        assert {life.key for life in source.pods} == {"default/a", "default/b"}

    run(test, node("n1"))


def test_queries_do_not_modify_cached_time_lines() -> None:
    async def test(fixture: ServerFixture) -> None:
        source = await fixture.service.state.source_of("default/alien")
        assert [life.fate for life in source.timelines_of("default/alien")] == [PodFate.UNATTENDED]
        kept = fixture.service.state.view.pods.timelines_of("default/alien")
        assert [life.fate for life in kept] == [PodFate.PENDING]

    run(test, node("n1"), pod("alien", schedulerName="nobody"))
