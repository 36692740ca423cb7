"""Webhooks, compared with a real kube-apiserver's answers with the same webhook server."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.apiserver.admission.targets import Targets
from bayplan.conformance.api import replay
from bayplan.conformance.cases import JsonObject
from bayplan.conformance.exchanges import comparable_parts
from tests.apiserver.admission.hook_server import HookServer, make_certificate

RECORDED = Path(__file__).parents[3] / "conformance/api_webhooks"

OWNERS = "owners of fields in another version are not compared across versions"
DIFFERENT = {
    **dict.fromkeys([f"own_conversions/{number:03}" for number in (13, 14, 15)], OWNERS),
    "own_conversions/020": "a list that can't be converted is a 500 at once; upstream says 429 while its cache tries again",
}
"""Exchanges that are answered in another way, and why."""


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HookServer]:
    """Return a webhook server."""
    server = HookServer(*make_certificate(tmp_path_factory.mktemp("hook")))
    yield server
    server.close()


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("own_webhooks", 123, id="admission webhooks"),
        pytest.param("own_conversions", 29, id="conversion webhooks"),
    ],
)
def test_webhook_answers_match_a_real_api_server(hooks: HookServer, name: str, want: int) -> None:
    text = gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).decode()
    recorded = re.search(r'"caBundle":"([A-Za-z0-9+/=]+)"', text)
    assert recorded is not None
    scenario: list[JsonObject] = [json.loads(line) for line in text.replace(recorded[1], hooks.bundle).splitlines()]
    targets = Targets(["loopback", f"127.0.0.1:19443=127.0.0.1:{hooks.port}"])
    answers = replay(scenario, targets=targets, values={"CA": hooks.bundle})
    different = {
        str(record["id"]): [
            (part, wanted, got)
            for part, wanted, got in comparable_parts(record, answers[str(record["id"])])
            if wanted != got
        ]
        for record in scenario
    }
    assert len(scenario) == want
    found = {key: parts for key, parts in different.items() if parts}
    assert {key: parts for key, parts in found.items() if key not in DIFFERENT} == {}
    assert {key for key in DIFFERENT if key.startswith(name)} <= found.keys()
