"""Compare Bayplan's answer to a recorded HTTP exchange with the recorded one, except for values that vary between runs.

The recording lists the differences between two runs of the real server (uids, versions, times, generated names). In
addition, timestamps that no request of the scenario contained are readings of the server's clock and are masked, as is
the uid in the details of a Status. Descriptions of columns are upstream's prose; Bayplan has its own, so only their
presence is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from bayplan.conformance.cases import Json, JsonObject, Scenario

_ANY = "<varies>"
_CLOCK = re.compile(r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
PARTS = ("status", "headers", "body", "stream", "base64")


def comparable_parts(record: JsonObject, answer: JsonObject) -> Iterator[tuple[str, Json, Json]]:
    """Yield the parts of an exchange: name, recorded value, Bayplan's value, with varying values masked on both sides.

    Args:
        record: the recorded exchange, with its ``scenario``; without one, it is the only exchange.
        answer: Bayplan's answer, with a ``response``.
    """
    recorded = cast("JsonObject", record["response"])
    ours = cast("JsonObject", answer.get("response") or {})
    scenario = record.get("scenario")
    sent = (scenario if isinstance(scenario, Scenario) else Scenario([record])).times_sent
    pointers = [str(each) for each in cast("list[Json]", record.get("variable") or [])]
    for part in PARTS:
        if part not in recorded and part not in ours:
            continue
        want, got = _copy(recorded.get(part)), _copy(ours.get(part))
        for pointer in pointers:
            first, _, rest = pointer[1:].partition("/")
            if first == part:
                want, got = masked_at(want, got, f"/{rest}" if rest else "")
        yield part, *_without_clock(want, got, "", sent)


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _copy(item) for name, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def masked_at(want: Json, got: Json, pointer: str) -> tuple[Json, Json]:
    """Mask the value at a pointer if both sides have one; return both sides."""
    if not pointer:
        return (_ANY, _ANY) if type(want) is type(got) else (want, got)
    token, _, rest = pointer[1:].partition("/")
    token = token.replace("~1", "/").replace("~0", "~")
    rest = f"/{rest}" if rest else ""
    if isinstance(want, dict) and isinstance(got, dict):
        if token in want and token in got:
            want[token], got[token] = masked_at(want[token], got[token], rest)
        elif not rest and token in want and len(want) == len(got):
            # A name that varies can also be a key of a map.
            ours = [name for name in got if name not in want]
            if len(ours) == 1:
                want[_ANY], got[_ANY] = want.pop(token), got.pop(ours[0])
    elif isinstance(want, list) and isinstance(got, list) and token.isdigit():
        index = int(token)
        if index < len(want) and index < len(got):
            want[index], got[index] = masked_at(want[index], got[index], rest)
    return want, got


def _without_clock(want: Json, got: Json, name: str, sent: frozenset[str]) -> tuple[Json, Json]:
    """Mask times of the clock, descriptions of columns, and uids in details; return both sides.

    A value is masked if both sides have it.
    """
    if isinstance(want, dict) and isinstance(got, dict):
        for key in want.keys() & got.keys():
            want[key], got[key] = _without_clock(want[key], got[key], key, sent)
        if name == "columnDefinitions" and isinstance(want.get("description"), str) and got.get("description"):
            want["description"] = got["description"] = _ANY
        if name == "details" and "uid" in want and "uid" in got:
            want["uid"] = got["uid"] = _ANY
    elif isinstance(want, list) and isinstance(got, list):
        for index in range(min(len(want), len(got))):
            want[index], got[index] = _without_clock(want[index], got[index], name, sent)
    elif isinstance(want, str) and isinstance(got, str) and _CLOCK.match(want) and want[:19] not in sent:
        return (_ANY, _ANY) if _CLOCK.match(got) else (want, got)
    return want, got
