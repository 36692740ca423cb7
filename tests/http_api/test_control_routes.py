"""Clock, configuration, plugins, snapshots, queue: changes through the HTTP API take effect."""

from __future__ import annotations

from pathlib import Path

from bayplan.sync.memory import MEMORY_NAMESPACE
from bayplan.sync.session import SyncStatus, status_document
from tests.http_api.server_fixture import ServerFixture, node, pod, run

MOST_ALLOCATED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      disabled:
      - name: PodTopologySpread
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
"""
MISSPELT = MOST_ALLOCATED.replace("- name: NodeResourcesFit\n", "- name: NodeResourceFit\n", 1).replace(
    "      disabled:\n      - name: PodTopologySpread\n", "      enabled:\n      - name: PodTopologySpreed\n"
)


def test_the_clock_is_paused_set_and_stepped() -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.get("/clock"))["mode"] == "real"
        paused = await fixture.send("PUT", "/clock", {"paused": True})
        assert (paused["paused"], paused["mode"]) == (True, "virtual")
        assert (await fixture.get("/clock"))["now"] == paused["now"]
        await fixture.create(*(pod(f"p{number}") for number in range(3)))
        fixture.server.bridge.flush()
        assert len(fixture.server.decisions) == 0
        for count in (1, 2):
            step = await fixture.send("POST", "/clock/step", {"by": "decision"})
            assert step["done"]
            assert len(fixture.server.decisions) == count == len(step["decisions"]) + count - 1
        event = await fixture.send("POST", "/clock/step", {"by": "event"})
        assert event["paused"]
        assert (await fixture.send("PUT", "/clock", {"paused": False, "speed": 20}))["speed"] == 20
        await fixture.settle()
        assert len(fixture.server.decisions) == 3
        assert (await fixture.send("PUT", "/clock", {"speed": 0}, want=422))["error"]["what"] == "speed of the clock"
        assert "unknown field" in (await fixture.send("PUT", "/clock", {"sped": 1}, want=422))["error"]["got"]
        assert (await fixture.send("PUT", "/clock", "{", want=400))["error"]["wanted"] == "JSON"

    run(test, node("n1"))


def test_configuration_validation_reports_problems_with_lines() -> None:
    async def test(fixture: ServerFixture) -> None:
        good = await fixture.send("POST", "/config/validate", MOST_ALLOCATED)
        assert (good["problems"], good["stage"]) == ([], None)
        assert "default-scheduler score: PodTopologySpread off" in good["difference"]
        assert any("MostAllocated" in line for line in good["difference"])
        assert good["effect"] == "1 pending pod will be retried"
        bad = await fixture.send("POST", "/config/validate", MISSPELT)
        assert bad["effective"] is None
        assert [(each["line"], each["hint"]) for each in bad["problems"]] == [(8, "'PodTopologySpread'")]
        field = await fixture.send("POST", "/config/validate", MOST_ALLOCATED.replace("profiles:", "profles:", 1))
        assert [each["hint"] for each in field["problems"]] == ["'profiles'"]
        same = await fixture.send("POST", "/config/validate", (await fixture.get("/config/default"))["text"])
        assert (same["difference"], same["effect"]) == ([], "nothing would change")
        assert (await fixture.send("POST", "/config/validate", "{"))["problems"]

    run(test, node("n1"), pod("huge", cpu="90"))


def test_a_new_configuration_applies_immediately_and_retries_pending_pods() -> None:
    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("first", nodeName="n2"))
        await fixture.settle()
        tried = len(fixture.server.decisions.numbers_of("default/huge"))
        answer = await fixture.send("PUT", "/config", MOST_ALLOCATED)
        assert answer["effective"] == fixture.server.setup.configuration.effective_document()
        score = answer["extension_points"]["default-scheduler"]["score"]
        assert "PodTopologySpread" not in [each["plugin"] for each in score]
        assert (await fixture.get("/config"))["text"] == MOST_ALLOCATED
        await fixture.create(pod("second"))
        await fixture.settle()
        record = fixture.server.decisions[fixture.server.decisions.numbers_of("default/second")[-1]]
        assert record.node == "n2"
        assert len(fixture.server.decisions.numbers_of("default/huge")) > tried
        refused = await fixture.send("PUT", "/config", MISSPELT, want=422)
        assert "PodTopologySpreed" in str(refused["error"])
        assert (await fixture.get("/config"))["text"] == MOST_ALLOCATED

    run(test, node("n1"), node("n2"), pod("huge", cpu="90"))


def test_extension_points_show_the_origin_of_plugins(tmp_path: Path) -> None:
    file = tmp_path / "even.py"
    file.write_text(
        "from bayplan import PerNodePlugin\n\n\nclass Even(PerNodePlugin):\n"
        "    def score_node(self, pod, node):\n        return 100 if node.name.endswith('2') else 0\n"
    )

    async def test(fixture: ServerFixture) -> None:
        points = (await fixture.get("/config"))["extension_points"]["default-scheduler"]
        origins = {each["plugin"]: each["from"] for each in points["score"]}
        assert origins["Even"] == str(file)
        assert origins["NodeResourcesFit"] == "default"
        plugins = {each["name"]: each for each in (await fixture.get("/plugins"))["items"]}
        assert (plugins["Even"]["built_in"], plugins["Even"]["file"]) == (False, str(file))
        assert plugins["NodeName"]["built_in"]
        before = await _raw(fixture, "one")
        file.write_text(file.read_text().replace("'2'", "'1'"))
        await fixture.send("POST", "/plugins/reload")
        after = await _raw(fixture, "two")
        assert (before, after) == ({"n1": 0, "n2": 100}, {"n1": 100, "n2": 0})
        file.write_text("import nothing_of_that_name\n")
        refused = await fixture.send("POST", "/plugins/reload", want=422)
        assert "nothing_of_that_name" in str(refused["error"])
        assert await _raw(fixture, "three") == after

    async def _raw(fixture: ServerFixture, name: str) -> dict[str, int]:
        """Schedule a pod, and return the plugin's raw score of each node."""
        await fixture.create(pod(name))
        await fixture.settle()
        matrix = await fixture.get(f"/pods/default/{name}/attempts/latest/matrix")
        column = [each["name"] for each in matrix["scorers"]].index("Even")
        return {row["node"]: row["raw"][column] for row in matrix["rows"]}

    run(test, node("n1"), node("n2"), plugins=[f"{file}:Even"])


def test_the_matrix_of_an_attempt_that_a_plugin_ended_states_the_error(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text(
        "from bayplan import PerNodePlugin\n\n\nclass Broken(PerNodePlugin):\n"
        "    def filter_node(self, pod, node):\n        return 1 / 0\n"
    )

    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("p"))
        await fixture.settle()
        matrix = await fixture.get("/pods/default/p/attempts/1/matrix")
        assert (matrix["recorded"], matrix["why"]) == (
            False,
            "the attempt ended with an error, so no results were recorded",
        )

    run(test, node("n1"), node("n2"), plugins=[f"{file}:Broken"])


def test_snapshots_are_taken_restored_and_deleted_by_name() -> None:
    async def names(fixture: ServerFixture) -> list[str]:
        await fixture.settle()
        return [item["name"] for item in (await fixture.get("/pods"))["items"]]

    async def test(fixture: ServerFixture) -> None:
        await fixture.create(pod("one"))
        await fixture.settle()
        assert (await fixture.send("POST", "/snapshots", {"name": "before"}, want=201))["name"] == "before"
        assert (await fixture.send("POST", "/snapshots", {"name": "before"}, want=409))["error"][
            "hint"
        ] == "another name"
        await fixture.create(pod("two"), node("n2"))
        assert await names(fixture) == ["one", "two"]
        await fixture.send("POST", "/snapshots/before/restore")
        assert await names(fixture) == ["one"]
        assert (await fixture.get("/nodes"))["total"] == 1
        await fixture.send("POST", "/reset")
        assert await names(fixture) == []
        assert [each["name"] for each in (await fixture.get("/snapshots"))["items"]] == ["before"]
        await fixture.send("DELETE", "/snapshots/before")
        assert (await fixture.send("POST", "/snapshots/before/restore", want=404))["error"]["what"] == "snapshot"
        assert (await fixture.send("DELETE", "/snapshots/before", want=404))["error"]["got"] == "'before'"
        for name in ("", "a/b", ".."):
            assert (await fixture.send("POST", "/snapshots", {"name": name}, want=422))["error"][
                "what"
            ] == "snapshot name"

    run(test, node("n1"))


def test_flush_and_retry_each_cause_a_new_attempt() -> None:
    async def test(fixture: ServerFixture) -> None:
        def attempts(name: str) -> int:
            return len(fixture.server.decisions.numbers_of(f"default/{name}"))

        before = attempts("huge"), attempts("huger")
        assert (await fixture.send("POST", "/queue/flush"))["moved"] == 2
        await fixture.settle()
        assert (attempts("huge"), attempts("huger")) == (before[0] + 1, before[1] + 1)
        assert (await fixture.send("POST", "/pods/default/huge/retry"))["moved"] == 1
        await fixture.settle()
        assert attempts("huge") == before[0] + 2
        assert (await fixture.send("POST", "/pods/default/nobody/retry", want=404))["error"]["what"] == "pod"

    run(test, node("n1"), pod("huge", cpu="90"), pod("huger", cpu="91"))


def test_the_sync_source_is_reported() -> None:
    async def test(fixture: ServerFixture) -> None:
        assert (await fixture.get("/sources"))["items"] == []
        assert (await fixture.get("/overview"))["source"] is None
        status = SyncStatus(
            ready=True,
            idle=False,
            created=7,
            updated=2,
            deleted=1,
            waiting=3,
            lag_seconds=4.6,
            problems=[],
            source={"nodes": "no answer"},
            left_out={"jobs": "would make pods"},
        )
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MEMORY_NAMESPACE}}
        await fixture.create(namespace, status_document("https://far.example", status))
        (item,) = (await fixture.get("/sources"))["items"]
        assert (item["name"], item["state"], item["lag_seconds"]) == ("https://far.example", "following", 4)
        assert item["counts"] == {"created": 7, "updated": 2, "deleted": 1, "waiting": 3}
        assert (item["message"], item["left_out"]) == ("nodes: no answer", ["jobs: would make pods"])
        assert item["summary"] == "Syncs with https://far.example, 4 s behind"
        facts = ("name", "kind", "state", "lag_seconds", "summary")
        assert (await fixture.get("/overview"))["source"] == {key: item[key] for key in facts}

    run(test)
