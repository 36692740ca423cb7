"""Recorded exchanges of a scheduler (1.32.5, in kube-scheduler-simulator) with its extender, repeated from both sides.

Bayplan as the scheduler sends the same requests and decides the same; Bayplan as the extender gives the same answers.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bayplan.app.extender_service import ExtenderOptions, make_extender
from bayplan.conformance.scripted_server import Response, scripted
from bayplan.library import Cluster
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.pod import Pod
from tests.extender.servers import says

Json = dict[str, Any]

FILE = Path(__file__).resolve().parents[2] / "conformance" / "extenders" / "annotations-extender.json.gz"
SCENARIO: Json = json.loads(gzip.decompress(FILE.read_bytes()))
EXCHANGES: list[Json] = SCENARIO["extender"]["exchanges"]
PREFIX = "kube-scheduler-simulator.sigs.k8s.io/"

PLUGIN = '''
from bayplan import PerNodePlugin


class Fixed(PerNodePlugin):
    """The fixed behaviour of the recorded extender."""

    def filter_node(self, pod, node):
        return {text!r} if node.name == "n0" else None

    def score_node(self, pod, node):
        return 10 * {scores!r}[node.name]
'''


def test_our_scheduler_sends_the_recorded_requests_and_makes_the_recorded_decisions() -> None:
    responses: dict[str, list[Response]] = {}
    for exchange in EXCHANGES:
        responses.setdefault(exchange["path"], []).append(says(exchange["response"]))
    with scripted(responses) as server:
        config = json.dumps(SCENARIO["config"]).replace("127.0.0.1:8890", server.address)
        cluster = Cluster(configuration=json.loads(config))
        nodes, decisions = {}, []
        for step in SCENARIO["steps"]:
            items = [default_object(decode(document)) for document in step]
            for item in items:
                if isinstance(item, Pod):
                    decisions += cluster.schedule(item)
                    nodes[item.metadata.name] = cluster.node_of(item.key)
                else:
                    cluster.add(item)
        asked: list[tuple[str, Any]] = list(server.take())
        cluster._setup.connections.close()
    assert [(path, request["Pod"]["metadata"]["name"], request["NodeNames"]) for path, request in asked] == [
        (each["path"], each["pod"], each["nodeNames"]) for each in EXCHANGES
    ]
    assert nodes == SCENARIO["nodeName"]
    for decision in decisions:
        annotations = SCENARIO["annotations"][decision.record.pod.partition("/")[2]]
        (answer,) = json.loads(annotations[f"{PREFIX}extender-filter-result"]).values()
        (said,) = decision.extenders
        refused = {decision.names[row]: status.message for row, status in said.refused}
        assert refused == answer["FailedNodes"]
        recorded = json.loads(annotations[f"{PREFIX}extender-prioritize-result"])
        scores: list[Json] = next(iter(recorded.values()), [])
        points = {decision.names[row]: 20 * score for row, score in said.scores or ()}
        assert points == {entry["Host"]: entry["Score"] for entry in scores}


@pytest.mark.parametrize("number", range(len(EXCHANGES)))
def test_our_extender_gives_the_recorded_answers(number: int, tmp_path: Path) -> None:
    exchange = EXCHANGES[number]
    behaviour = SCENARIO["extender"]
    file = tmp_path / "fixed.py"
    file.write_text(PLUGIN.format(text=behaviour["failText"], scores=behaviour["scores"]))
    extender = make_extender(ExtenderOptions(plugins=[f"{file}:Fixed"]))
    pods = {item["metadata"]["name"]: item for item in SCENARIO["objects"] if item["kind"] == "Pod"}
    for item in SCENARIO["objects"]:
        if item["kind"] == "Node":
            extender._scheduler.handle(None, default_object(decode(item)), 0)
    arguments = {"Pod": pods[exchange["pod"]], "Nodes": None, "NodeNames": exchange["nodeNames"]}
    if exchange["path"].endswith("filter"):
        assert extender.filter(arguments) == {"Nodes": None} | exchange["response"]
    else:
        assert extender.prioritize(arguments) == exchange["response"]
