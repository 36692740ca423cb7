"""Pods, matrices, explanations: the HTTP API agrees with the decision records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import numpy as np

from bayplan.analysis.explain import attempts_of
from bayplan.analysis.verdict import pod_verdict
from bayplan.engine.decision import Decision
from bayplan.engine.records import RecordLevel
from bayplan.http_api.live_source import LiveSource
from bayplan.http_api.query import Deadline
from bayplan.http_api.waiting_causes import WaitingCauses, common_cause, waiting_rows
from bayplan.sim.result import PodTimeline
from bayplan.testing.builders import make_node, make_pod
from bayplan.testing.object_builders import make_claim, make_volume
from tests.http_api.server_fixture import ServerFixture, node, pod, run

NODES = [
    *(node(f"n{number}", zone="ab"[number % 2]) for number in range(6)),
    node("large", zone="a", cpu="16", memory="64Gi"),
    node("tainted", taints=[{"key": "gpu", "effect": "NoSchedule"}], cpu="64"),
    node("off", unschedulable=True),
]


class Counted:
    """A source that records the pods whose timelines are read."""

    def __init__(self, source: LiveSource) -> None:
        self._source = source
        self.asked: list[str] = []

    def timelines_of(self, key: str) -> list[PodTimeline]:
        self.asked.append(key)
        return self._source.timelines_of(key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


async def _latest(fixture: ServerFixture, key: str) -> Decision:
    return fixture.server.decisions.decision(fixture.server.decisions.numbers_of(key)[-1])


def test_a_missing_matrix_is_explained() -> None:
    gated = pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    alien = pod("alien", schedulerName="volcano")
    unattended = 'no scheduler named "volcano" is configured'

    async def test(fixture: ServerFixture) -> None:
        async def why(name: str) -> str:
            found = await fixture.get(f"/pods/default/{name}/attempts/latest/matrix")
            assert found["recorded"] is False
            return str(found["why"])

        assert await why("imported") == "the pod already had a node when it was loaded"
        assert await why("gated") == "the pod was never tried: it is held back by scheduling gates"
        assert await why("alien") == unattended
        assert (await fixture.get("/pods/default/alien"))["summary"] == f"default/alien is pending: {unattended}"
        # Lists, facets and the overview give the same reason.
        (row,) = (await fixture.get("/pods", reason=unattended))["items"]
        assert (row["name"], row["why"]) == ("alien", unattended)
        facets = (await fixture.get("/pods", facets=1))["facets"]["reason"]
        assert {"value": unattended, "count": 1} in facets
        overview = await fixture.get("/overview")
        assert overview["summary"] == f"1 of 3 pods is pending because {unattended}; 1 more is held back by gates"
        assert unattended in [each["text"] for each in overview["reasons"]]

    run(test, node("n1"), pod("imported", nodeName="n1"), gated, alien)


def test_a_pod_is_no_longer_unattended_once_its_scheduler_is_configured() -> None:
    both = "".join(f"- schedulerName: {name}\n" for name in ("default-scheduler", "volcano"))
    text = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n{both}"

    async def test(fixture: ServerFixture) -> None:
        assert "volcano" in (await fixture.get("/pods"))["items"][0]["why"]
        await fixture.server.configure(text)
        await fixture.settle()
        (row,) = (await fixture.get("/pods"))["items"]
        assert "volcano" not in row["why"]

    run(test, node("n1"), pod("alien", schedulerName="volcano"))


def test_the_matrix_matches_the_decision_record() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(*(pod(f"p{number}", cpu="500m") for number in range(8)), pod("wide", cpu="10"))
        await fixture.settle()
        for name in ("p0", "p7", "wide"):
            decision = await _latest(fixture, f"default/{name}")
            answer = await fixture.get(f"/pods/default/{name}/attempts/latest/matrix", exhaustive=1)
            assert answer["winner"] == decision.record.node
            assert answer["tie_set"] == sorted(decision.ties)
            assert answer["counts"]["fit"] == int(decision.feasible.sum())
            assert [each["name"] for each in answer["scorers"]] == list(decision.scorers)
            _same(answer, decision)
            columns = await fixture.get(f"/pods/default/{name}/attempts/latest/matrix", exhaustive=1, form="columns")
            names = list(answer["rows"][0])
            assert [
                dict(zip(names, row, strict=True)) for row in zip(*(columns["rows"][n] for n in names), strict=True)
            ] == (answer["rows"])

    run(test, *NODES)


def _same(answer: Any, decision: Decision) -> None:
    """Compare each cell with the record's arrays."""
    assert sorted(row["node"] for row in answer["rows"]) == sorted(decision.names)
    for row in answer["rows"]:
        place = decision.names.index(row["node"])
        fits = bool(decision.feasible[place])
        scored = fits and decision.total[place] >= 0
        assert row["total"] == (int(decision.total[place]) if scored else None)
        assert row["tie"] == (row["node"] in decision.ties)
        for name, values in (
            ("raw", decision.raw),
            ("normalized", decision.normalized),
            ("weighted", decision.weighted),
        ):
            assert row[name] == ([int(each) for each in values[:, place]] if scored else [None] * len(decision.scorers))
        for number, index in enumerate(row["filters"]):
            if index is None:
                assert not (decision.allowed[place] and decision.examined[place])
                continue
            status = answer["statuses"][index]
            verdict = int(decision.codes[number, place])
            assert (status["code"] == "Success") == (verdict == 0)
            if verdict:
                want = decision.statuses[number, verdict]
                assert (status["reasons"], status["plugin"]) == (list(want.reasons), decision.filters[number])
        failure = decision.first_failure(place)
        assert row["plugin"] == ("" if fits or failure is None else failure.plugin)


def test_matrix_rows_are_sorted_by_total_and_then_by_nearness() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("a", cpu="3", nodeName="n0"), pod("b", cpu="2", nodeName="n1"), pod("wide", cpu="5"))
        await fixture.settle()
        answer = await fixture.get("/pods/default/wide/attempts/latest/matrix")
        rows = answer["rows"]
        fitting = [row for row in rows if row["total"] is not None or not row["plugin"]]
        assert rows[0]["node"] == "large"
        assert len(fitting) == answer["counts"]["fit"] == 1
        failed = [row["node"] for row in rows[1:]]
        # The empty nodes lack one CPU, n1 three, n0 four. The pod does not tolerate the taint, and the unschedulable
        # node lacks CPU, too.
        assert failed == ["n2", "n3", "n4", "n5", "n1", "n0", "tainted", "off"]
        assert rows[1]["gap"] == "lacks 1 cpu (requests 5, 4 free)"
        assert rows[6]["gap"] == "lacks 4 cpu (requests 5, 1 free)"
        nearest = await fixture.get("/pods/default/wide/attempts/latest/matrix", only="nearest", limit=2)
        assert [row["node"] for row in nearest["rows"]] == ["n2", "n3"]
        named = await fixture.get("/pods/default/wide/attempts/latest/matrix", q="LAR")
        assert [row["node"] for row in named["rows"]] == ["large"]
        by_name = await fixture.get("/pods/default/wide/attempts/latest/matrix", sort="-node")
        assert [row["node"] for row in by_name["rows"]] == sorted((row["node"] for row in rows), reverse=True)

    run(test, *NODES)


def test_filters_after_the_first_failure_are_shown_only_on_request() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("huge", cpu="100"))
        await fixture.settle()
        plain = await fixture.get("/pods/default/huge/attempts/latest/matrix", q="off")
        whole = await fixture.get("/pods/default/huge/attempts/latest/matrix", q="off", exhaustive=1)
        first = next(place for place, index in enumerate(plain["rows"][0]["filters"]) if index)
        assert plain["rows"][0]["filters"][first + 1 :] == [None] * (len(plain["filters"]) - first - 1)
        assert None not in whole["rows"][0]["filters"]
        assert sum(bool(index) for index in whole["rows"][0]["filters"]) > 1

    run(test, *NODES)


def test_pod_page_and_explanation_share_one_verdict() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("small"), pod("huge", cpu="100"), pod("gated", schedulingGates=[{"name": "a/b"}]))
        await fixture.settle()
        for name in ("small", "huge", "gated"):
            key = f"default/{name}"
            answer = await fixture.get(f"/pods/default/{name}")
            explained = await fixture.get(f"/pods/default/{name}/explanation")
            source = await fixture.service.state.source_of(key)
            lives = source.timelines_of(key)
            verdict = pod_verdict(source, lives[-1], attempts_of(source, lives[-1], lives))
            assert answer["summary"] == explained["verdict"] == verdict == f"{key} {answer['short']}"
            assert len(answer["attempts"]) == len(fixture.server.decisions.numbers_of(key))
            assert answer["manifest"]["metadata"]["name"] == name
            assert f"name: {name}" in answer["manifest_text"]
            assert answer["pod"]["requests"]["cpu"] == {"small": 1000, "huge": 100_000, "gated": 1000}[name]
        huge = await fixture.get("/pods/default/huge")
        assert huge["status"] == "waiting"
        assert huge["queue"]["tier"] in ("unschedulable", "backoff")
        assert sum(each["nodes"] for each in huge["rejections"]) == len(NODES)
        gated = await fixture.get("/pods/default/gated")
        assert (gated["status"], gated["queue"]["tier"]) == ("gated", "gated")
        assert "waiting for scheduling gates" in gated["summary"]

    run(test, *NODES)


def test_nodes_rejected_for_good_and_for_now_with_one_message_are_counted_together() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("full", cpu="5"))
        await fixture.settle()
        await fixture.create(pod("p", cpu="6"))
        await fixture.settle()
        page = await fixture.get("/pods/default/p")
        assert page["rejections"] == [{"text": "Insufficient cpu", "plugin": "NodeResourcesFit", "nodes": 3}]
        explanation = await fixture.get("/pods/default/p/explanation")
        groups = [(each["code"], len(each["nodes"])) for each in explanation["detail"]["rejections"]]
        assert groups == [("UnschedulableAndUnresolvable", 2), ("Unschedulable", 1)]

    run(test, node("small"), node("tiny", cpu="2"), node("big", cpu="8"))


def test_all_endpoints_report_the_same_root_cause() -> None:
    async def test(fixture: ServerFixture) -> None:
        volume = make_volume("pv").csi("disks.example").zone("d").bound("data").document()
        claim = make_claim("data").bound("pv").document()
        await fixture.create(volume, claim, make_pod("db").req(cpu="3").claim("data").document())
        await fixture.settle()
        cause = (await fixture.get("/unblock", workload="pod/default/db"))["cause"]
        assert cause["headline"] == "its volume data is in d; no node is there"
        assert (await fixture.get("/pods/default/db"))["summary"] == f"default/db is pending: {cause['headline']}"
        assert [each["summary"] for each in (await fixture.get("/waiting"))["items"]] == [cause["summary"]]
        (row,) = (await fixture.get("/pods", q="db"))["items"]
        assert row["why"] == cause["headline"]
        overview = await fixture.get("/overview")
        assert overview["summary"] == f"1 of 1 pod is pending: {cause['summary']}"

    run(test, *NODES[:7])


def test_the_cause_of_pods_of_one_workload_is_computed_once() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(*(pod(f"p{number}", cpu="100") for number in range(3)))
        await fixture.settle()
        pods = await fixture.service.state.view.pod_columns()
        rows = waiting_rows(pods, pods.used)
        for row in rows:
            life = pods.lives[row]
            assert life is not None
            life.workload = "Job default/p"
        nodes = await fixture.service.state.view.node_columns()
        source: Any = Counted(fixture.service.state.source_of_all(pods, nodes, rows))
        known = WaitingCauses()
        causes = known.of(source, pods, nodes, rows, Deadline(60))
        assert len(causes) == len(rows) == 3
        assert len(set(causes.values())) == 1
        assert source.asked == ["default/p0"]
        cause = common_cause(causes, len(rows))
        assert cause is not None
        assert cause.pods == 3
        assert common_cause(causes, 7) is None
        # Without time no cause is searched, and known causes are used until a node is added or removed.
        assert WaitingCauses().of(source, pods, nodes, rows, Deadline(0)) == {}
        assert known.of(source, pods, nodes, rows, Deadline(0)) == causes
        assert (known.found, known.cached) == (1, 1)
        assert known.of(source, pods, replace(nodes, names_version=-1), rows, Deadline(0)) == {}

    run(test, *NODES)


def test_preemption_shows_candidates_and_victims() -> None:
    async def test(fixture: ServerFixture) -> None:
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        await fixture.create(high, *(pod(f"low-{number}", cpu="3") for number in range(2)))
        await fixture.settle()
        await fixture.create(pod("urgent", cpu="4", priorityClassName="high", terminationGracePeriodSeconds=0))
        await fixture.settle()
        found = await fixture.get("/pods/default/urgent/attempts/1/preemption")
        record = fixture.server.decisions[fixture.server.decisions.numbers_of("default/urgent")[0]]
        chosen = next(each for each in found["candidates"] if each["chosen"])
        assert chosen["node"] == record.nominated_node == found["chosen"]
        assert [victim["pod"] for victim in chosen["victims"]] == list(record.victims)
        page = await fixture.get("/pods/default/urgent")
        assert page["attempts"][0]["victims"] == list(record.victims)
        matrix = await fixture.get("/pods/default/urgent/attempts/2/matrix")
        assert [each["gap"] for each in matrix["rows"]] == [
            "",
            f"not examined: the pod was nominated to {record.nominated_node}, which is tried first",
        ]
        gone = await fixture.get(f"/pods/{record.victims[0]}")
        assert gone["status"] in ("deleted", "terminating")
        assert (await fixture.get("/pods/default/low-0/attempts/latest/preemption")) is None

    run(test, node("n1"), node("n2"))


def test_a_deleted_pod_can_still_be_queried() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("brief"))
        await fixture.settle()
        await fixture.api("DELETE", "/api/v1/namespaces/default/pods/brief", {"gracePeriodSeconds": 0})
        await fixture.settle()
        page = await fixture.get("/pods/default/brief")
        assert (page["deleted"], page["status"], page["manifest"]) == (True, "deleted", None)
        assert page["summary"].startswith("default/brief was on ")
        assert (await fixture.get("/pods/default/brief/attempts/latest/matrix"))["recorded"]
        assert (await fixture.get("/pods", q="brief"))["total"] == 0

    run(test, *NODES)


def test_unknown_pods_attempts_and_parameters_are_refused() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("p"))
        await fixture.settle()
        assert (await fixture.get("/pods/default/q", want=404))["error"]["what"] == "pod"
        missing = await fixture.get("/pods/default/p/attempts/7/matrix", want=404)
        assert missing["error"]["wanted"] == "1 to 1, or latest"
        assert (await fixture.get("/pods/default/p/explanation", want=404, attempt=7))["error"]["got"] == "7"
        assert (await fixture.get("/pods/default/p/explanation", want=404, node="x"))["error"]["what"] == "node"
        assert (await fixture.get("/pods/default/p/attempts/latest/matrix", want=400, sort="x"))["error"][
            "what"
        ] == "sort"
        assert (await fixture.get("/pods", want=400, status="sleeping"))["error"]["what"] == "status"

    run(test, *NODES)


def test_summary_records_have_no_matrix_and_state_the_reason() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("p"))
        await fixture.settle()
        matrix = await fixture.get("/pods/default/p/attempts/latest/matrix")
        assert (matrix["recorded"], matrix["rows"]) == (False, [])
        assert matrix["why"] == "only summaries are recorded at this record level"
        assert (await fixture.get("/pods/default/p"))["rejections"] == []
        assert (await fixture.get("/pods/default/p/explanation"))["notes"]

    run(test, *NODES, level=RecordLevel.SUMMARY)


def test_unusual_names_are_served_and_hostile_queries_match_nothing() -> None:
    hostile = ["a" * 253, "x.y-z.0", "0"]
    queries = ["<script>alert(1)</script>", "\u202eabc", "%00", "a'b\"c\\", "🙂", "../../etc/passwd", "\x00"]

    async def test(fixture: ServerFixture) -> None:
        await fixture.create(*(pod(name) for name in hostile))
        await fixture.settle()
        for name in hostile:
            assert (await fixture.get(f"/pods/default/{name}"))["pod"]["name"] == name
        for text in queries:
            assert (await fixture.get("/pods", q=text))["items"] == []
            assert (await fixture.get("/nodes", q=text))["items"] == []
            refused = await fixture.client.get(f"/bayplan/v1/pods/default/{quote(text, safe='')}")
            assert refused.status_code == 404
            assert refused.headers["content-type"] == "application/json"
            assert (await fixture.get("/pods", reason=text, facets=1))["total"] == 0

    run(test, *NODES)


def test_margins_in_the_pod_list_match_the_totals() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(*(pod(f"p{number}", cpu="700m") for number in range(5)))
        await fixture.settle()
        for _ in range(5):
            # Each request computes and caches some more margins, as long as its time permits.
            items = {item["name"]: item for item in (await fixture.get("/pods"))["items"]}
        for name, item in items.items():
            decision = await _latest(fixture, f"default/{name}")
            totals = np.unique(decision.total[decision.total >= 0])
            if len(totals) > 1:
                assert item["why"].startswith(f"{int(totals[-1] - totals[-2]):,} ahead of ")
            else:
                assert item["why"].startswith(("one of ", "best of "))

    run(test, *NODES)


def test_a_tainted_node_with_the_device_ranks_before_nodes_without_it() -> None:
    gpus = make_node("gpus").capacity(cpu="4", memory="8Gi", **{"example.com/gpu": "1"}).taint("gpu").document()

    async def test(fixture: ServerFixture) -> None:
        await fixture.create(make_pod("train").limit({"cpu": "1", "example.com/gpu": "1"}).document())
        await fixture.settle()
        rows = (await fixture.get("/pods/default/train/attempts/latest/matrix"))["rows"]
        assert [row["node"] for row in rows] == ["gpus", "n0", "n1"]

    run(test, *NODES[:2], gpus)
