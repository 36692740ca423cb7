"""Plugins that are served as an extender: filters, scores and preemption, for nodes in full and for names of nodes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from bayplan.app.extender_service import ExtenderOptions, ServedExtender, make_extender
from bayplan.base.errors import InputError
from bayplan.extender.plugin_extender import FORGET_SECONDS, PluginExtender
from bayplan.extender.server import OnRequest, extender_application
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.testing.builders import make_node, make_pod

Json = dict[str, Any]

PLUGIN = '''
from bayplan import PerNodePlugin, unresolvable


class Picky(PerNodePlugin):
    """Keeps pods off n0 now and off n2 for good; fails on n3 for pods that say so."""

    def filter_node(self, pod, node):
        if node.name == "n3" and pod.metadata.labels.get("fail"):
            raise ValueError("no sensor on n3")
        if node.name == "n0":
            return "node(s) were n0"
        return unresolvable("node(s) were n2") if node.name == "n2" else None

    def score_node(self, pod, node):
        if pod.metadata.labels.get("worse"):
            return 1000
        return {"n1": 75, "n3": 24}.get(node.name, 0)


class Empty(PerNodePlugin):
    """Wants nodes without pods."""

    def filter_node(self, pod, node):
        return f"node(s) held {len(node.pods)} pods" if node.pods else None

'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plugins.py"
    path.write_text(PLUGIN)
    return path


def nodes() -> list[Node]:
    return [make_node(f"n{number}").capacity(cpu="4", memory="8Gi").obj() for number in range(4)]


def running(name: str, node: str) -> Pod:
    return make_pod(name).req(cpu="3").node(node).uid(f"uid-{name}").priority(1).obj()


def plain(item: object) -> Any:
    return json.loads(msgspec.json.encode(item))


def sent(pod: Pod, items: list[Node]) -> Json:
    """Return the arguments that a scheduler sends if the extender has no node cache (`nodeCacheCapable`)."""
    return {"Pod": plain(pod), "Nodes": {"metadata": {}, "items": [plain(item) for item in items]}, "NodeNames": None}


def served(file: Path, *names: str, cluster: list[Node | Pod] | None = None) -> ServedExtender:
    extender = make_extender(ExtenderOptions(plugins=[f"{file}:{name}" for name in names]))
    for item in cluster or ():
        extender._scheduler.handle(None, item, 0)
    return extender


def test_filter_returns_passing_nodes_and_reasons_for_the_others(file: Path) -> None:
    arguments = sent(make_pod("p").obj(), nodes())
    answer = served(file, "Picky").filter(arguments)
    assert answer["FailedNodes"] == {"n0": "node(s) were n0"}
    assert answer["FailedAndUnresolvableNodes"] == {"n2": "node(s) were n2"}
    assert answer["Nodes"] == {"metadata": {}, "items": [arguments["Nodes"]["items"][row] for row in (1, 3)]}
    assert answer["NodeNames"] is None
    assert answer["Error"] == ""


def test_node_names_are_answered_with_node_names(file: Path) -> None:
    extender = served(file, "Picky", cluster=[*nodes()])
    answer = extender.filter({"Pod": plain(make_pod("p").obj()), "NodeNames": ["n3", "n0", "n1"]})
    assert answer["NodeNames"] == ["n3", "n1"]
    assert answer["Nodes"] is None


def test_a_node_that_is_no_longer_sent_is_forgotten(file: Path) -> None:
    clock = [0.0]
    known = served(file, "Picky", cluster=[nodes()[0]])
    extender = PluginExtender(known._scheduler, clock=lambda: clock[0])
    state = known._scheduler.state

    def names(seconds: float, *rows: int) -> list[str]:
        clock[0] = seconds
        extender.filter(sent(make_pod("p").obj(), [nodes()[row] for row in rows]))
        return sorted(state.nodes.row_of)

    assert names(0, 0, 1, 2) == ["n0", "n1", "n2"]
    assert names(FORGET_SECONDS, 2) == ["n0", "n1", "n2"]
    # n0 is in the cluster's files.
    assert names(FORGET_SECONDS + 1, 3) == ["n0", "n2", "n3"]
    assert names(2 * FORGET_SECONDS + 1) == ["n0", "n3"]
    # A node that returns is known again.
    arguments = sent(make_pod("p").obj(), nodes()[1:2])
    assert extender.filter(arguments)["Nodes"] == {"metadata": {}, "items": arguments["Nodes"]["items"]}
    state.check_invariants()


def test_requests_by_name_keep_a_node(file: Path) -> None:
    clock = [0.0]
    known = served(file, "Picky", cluster=[])
    extender = PluginExtender(known._scheduler, clock=lambda: clock[0])
    pod = make_pod("p").obj()
    extender.filter(sent(pod, nodes()[:3]))
    clock[0] = FORGET_SECONDS
    extender.filter({"Pod": sent(pod, [])["Pod"], "NodeNames": ["n0"]})
    extender.preempt(
        {"Pod": sent(pod, [])["Pod"], "NodeNameToMetaVictims": {"n1": {"Pods": [], "NumPDBViolations": 0}}}
    )
    clock[0] = FORGET_SECONDS + 1
    extender.filter(sent(pod, nodes()[3:4]))
    assert sorted(known._scheduler.state.nodes.row_of) == ["n0", "n1", "n3"]


def test_a_node_that_the_files_lack_is_rejected_and_others_are_answered(file: Path) -> None:
    extender, arguments = served(file, "Picky", cluster=[*nodes()]), {"Pod": plain(make_pod("p").obj())}
    asked = {**arguments, "NodeNames": [node.metadata.name for node in nodes()]}
    more = {**arguments, "NodeNames": ["n9", *(node.metadata.name for node in nodes())]}
    known, answer = extender.filter(asked), extender.filter(more)
    assert (answer["NodeNames"], answer["FailedNodes"]) == (known["NodeNames"], known["FailedNodes"])
    unresolvable = {"n2": "node(s) were n2", "n9": "node(s) not in the extender's files"}
    assert answer["FailedAndUnresolvableNodes"] == unresolvable
    assert extender.prioritize(more) == [*extender.prioritize(asked), {"Host": "n9", "Score": 0}]
    assert extender.filter({**arguments, "NodeNames": ["n9"]})["NodeNames"] == []
    assert extender.prioritize({**arguments, "NodeNames": ["n9"]}) == [{"Host": "n9", "Score": 0}]


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param(
            ("Picky",), {"n0": 0, "n1": 8, "n2": 0, "n3": 2}, id="hundredths become tenths, rounded to the nearest"
        ),
        pytest.param(("Empty",), {"n0": 0, "n1": 0, "n2": 0, "n3": 0}, id="no scores at all"),
    ],
)
def test_scores_are_scaled_to_0_to_10(plugins: tuple[str, ...], want: dict[str, int], file: Path) -> None:
    answer = served(file, *plugins).prioritize(sent(make_pod("p").obj(), nodes()))
    assert {entry["Host"]: entry["Score"] for entry in answer} == want


def test_in_tree_plugins_can_be_served_with_a_weight(file: Path) -> None:
    extender = make_extender(ExtenderOptions(plugins=["NodeResourcesFit=3", f"{file}:Picky"]))
    answer = extender.prioritize(sent(make_pod("p").req(cpu="2", memory="4Gi").obj(), nodes()[:2]))
    # NodeResourcesFit gives 50 to both nodes, with weight 3; Picky gives 0 and 75.
    assert answer == [{"Host": "n0", "Score": 4}, {"Host": "n1", "Score": 6}]
    large = extender.filter(sent(make_pod("q").req(cpu="5").obj(), nodes()))
    assert set(large["FailedAndUnresolvableNodes"].values()) == {"Insufficient cpu"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "whole", [pytest.param(True, id="victims as pods"), pytest.param(False, id="victims by their uids")]
)
def test_preempt_returns_candidates_where_the_pod_fits_without_the_victims(whole: bool, file: Path) -> None:
    pods = [running("a", "n1"), running("b", "n1"), running("c", "n3")]
    extender = served(file, "Empty", cluster=[*nodes(), *pods])

    def victims(*found: Pod) -> Json:
        listed = [plain(pod) if whole else {"UID": pod.metadata.uid} for pod in found]
        return {"Pods": listed, "NumPDBViolations": 1}

    form = "NodeNameToVictims" if whole else "NodeNameToMetaVictims"
    answer = extender.preempt(
        {"Pod": plain(make_pod("p").obj()), form: {"n1": victims(pods[0]), "n3": victims(pods[2]), "n9": victims()}}
    )
    want = {"n3": {"Pods": [{"UID": "uid-c"}], "NumPDBViolations": 1}, "n9": {"Pods": [], "NumPDBViolations": 1}}
    assert answer == {"NodeNameToMetaVictims": want}
    # Without a change, the results are the same.
    assert extender.filter({"Pod": plain(make_pod("p").obj()), "NodeNames": ["n1", "n2"]})["FailedNodes"] == {
        "n1": "node(s) held 2 pods"
    }


def test_a_plugin_that_neither_filters_nor_scores_is_refused() -> None:
    with pytest.raises(InputError, match="--plugin DefaultBinder: expected a plugin that filters or scores"):
        make_extender(ExtenderOptions(plugins=["DefaultBinder"]))


def ask(extender: ServedExtender, path: str, content: str, *, on_request: OnRequest | None = None) -> httpx.Response:
    async def send_request() -> httpx.Response:
        transport = httpx.ASGITransport(extender_application(extender, on_request=on_request))
        async with httpx.AsyncClient(transport=transport, base_url="http://extender") as client:
            return await client.post(path, content=content)

    return asyncio.run(send_request())


@pytest.mark.parametrize(
    ("path", "labels", "content", "status", "want"),
    [
        pytest.param("/filter", {}, None, 200, '"Error":""', id="a filter"),
        pytest.param("/prioritize", {}, None, 200, '{"Host":"n1","Score":8}', id="scores"),
        pytest.param(
            "/filter",
            {"fail": "1"},
            None,
            200,
            "ValueError: no sensor on n3",
            id="a failing filter reports it in its response",
        ),
        pytest.param(
            "/prioritize", {"worse": "1"}, None, 500, "invalid score 1000", id="failing scores have only a status"
        ),
        pytest.param("/filter", {}, "{", 400, "the request is not JSON", id="no JSON"),
        pytest.param("/filter", {}, "[]", 400, "the request is not a JSON object", id="no object"),
        pytest.param("/filter", {}, "{}", 200, '"Error":"Pod: expected a pod, got none"', id="no pod"),
        pytest.param("/preempt", {}, "{}", 400, "Pod: expected a pod, got none", id="no pod to preempt for"),
        pytest.param("/filter", {}, '{"pod": {"spec": {"priority": "x"}}}', 200, '"Error":"Pod', id="an invalid pod"),
        pytest.param(
            "/filter", {}, '{"pod": {}, "nodes": {"items": {}}}', 200, "expected a list of nodes", id="no list of nodes"
        ),
        pytest.param(
            "/filter",
            {},
            '{"pod": {}, "nodeNames": [["n1"]]}',
            200,
            "expected names of nodes",
            id="names that are not strings",
        ),
        pytest.param("/bind", {}, "{}", 404, "Not Found", id="no such verb"),
    ],
)
def test_http_requests_get_the_expected_status_and_body(
    path: str, labels: dict[str, str], content: str | None, status: int, want: str, file: Path
) -> None:
    body = content if content is not None else json.dumps(sent(make_pod("p").label(labels).obj(), nodes()))
    response = ask(served(file, "Picky"), path, body)
    assert response.status_code == status
    assert want in response.text


@pytest.mark.parametrize("path", ["/filter", "/preempt"])
def test_failed_requests_are_reported_too(path: str, file: Path) -> None:
    reported: list[tuple[str, object]] = []
    ask(served(file, "Picky"), path, "{}", on_request=lambda verb, arguments, answer: reported.append((verb, answer)))
    assert reported == [(path.removeprefix("/"), {"Error": "Pod: expected a pod, got none"})]


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param({"content-type": "application/json"}, 200, id="kube-scheduler"),
        pytest.param({"content-type": "application/json", "origin": "http://localhost:3000"}, 403, id="a foreign page"),
        pytest.param({"content-type": "text/plain"}, 415, id="a form"),
    ],
)
def test_web_pages_of_other_origins_are_refused(headers: dict[str, str], want: int, file: Path) -> None:
    application = extender_application(make_extender(ExtenderOptions(plugins=[f"{file}:Picky"])))

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(app=application)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8888") as client:
            arguments = {"Pod": {"metadata": {"name": "p"}}, "Nodes": {"items": []}}
            return [
                (await client.post(f"/{verb}", content=json.dumps(arguments), headers=headers)).status_code
                for verb in ("filter", "prioritize")
            ]

    assert asyncio.run(ask()) == [want] * 2
