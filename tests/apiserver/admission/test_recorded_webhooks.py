"""Webhooks against what a real kube-apiserver answered with the same webhook server."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.apiserver.admission.targets import Targets
from bayplan.conformance.api import replay
from bayplan.conformance.cases import JsonObject
from bayplan.conformance.exchanges import comparable_parts
from tests.apiserver.admission.hook_server import HookServer, make_certificate

RECORDED = Path(__file__).parents[3] / "conformance/api_webhooks/own_webhooks.jsonl.gz"

@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[JsonObject, JsonObject]]]:
    """Return the recorded exchanges with our answers."""
    scenario = [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
    server = HookServer(*make_certificate(tmp_path_factory.mktemp("hook")))
    here = f"127.0.0.1:{server.port}"
    targets = Targets(["loopback", f"127.0.0.1:19443={here}"])
    found = replay(scenario, targets=targets, values={"CA": server.bundle})
    yield {str(each["id"]): (each, found[str(each["id"])]) for each in scenario}
    server.close()


def test_answers_are_those_of_a_real_api_server(answers: dict[str, tuple[JsonObject, JsonObject]]) -> None:
    different = {
        name: [(part, want, got) for part, want, got in comparable_parts(record, answer) if want != got]
        for name, (record, answer) in answers.items()
    }
    assert len(answers) > 100
    assert {name: parts for name, parts in different.items() if parts} == {}
