"""Numbers of thousands of digits in fields, annotations and parameters: refused or saturated, never an exception."""

from __future__ import annotations

import httpx
import pytest

from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import MAX_DIGITS, whole_number
from bayplan.controllers.cron_schedule import parse_cron_schedule
from bayplan.controllers.job_indexes import IndexSet, PendingIndexes
from tests.apiserver.client import PODS, Client
from tests.apiserver.serving import serving

DIGITS = "9" * 5_000
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def test_whole_number_saturates_at_max_digits() -> None:
    assert whole_number("12") == 12
    assert whole_number(DIGITS) == 10**MAX_DIGITS


def test_a_huge_percentage_is_refused() -> None:
    spec = {"minAvailable": f"{DIGITS}%", "selector": {}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
    answer = Client().post(BUDGETS, budget)
    assert answer.status == 422
    assert str(answer.at("message")).endswith("must not be greater than 100%")


@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
@pytest.mark.parametrize(
    ("number", "want"),
    [
        pytest.param(str(2**63 - 1), "", id="the largest of 64 bits"),
        pytest.param(str(-(2**63)), "", id="the smallest"),
        pytest.param("%2B5", "", id="with a sign"),
        pytest.param(str(2**63), "value out of range", id="one more"),
        pytest.param(str(-(2**63) - 1), "value out of range", id="one less"),
        pytest.param(DIGITS, "value out of range", id="thousands of digits"),
        pytest.param("1_000", "invalid syntax", id="as Python writes numbers"),
        pytest.param("%D9%A3", "invalid syntax", id="an Arabic digit"),
        pytest.param("-", "invalid syntax", id="a sign without digits"),
    ],
)
def test_query_parameters_are_limited_to_64_bit_integers(name: str, number: str, want: str) -> None:
    answer = Client().get(f"{PODS}?{name}={number}")
    assert answer.status == (400 if want else 200)
    assert str(answer.at("message") or "").endswith(want)


@pytest.mark.parametrize("seconds", [str(2**63 - 1), str(-(2**63))])
def test_a_watch_accepts_extreme_timeouts(seconds: str) -> None:
    with serving() as server:
        with httpx.stream("GET", f"{server.url}{PODS}?watch=1&timeoutSeconds={seconds}", timeout=20) as answer:
            assert answer.status_code == 200
        assert httpx.get(f"{server.url}/readyz").status_code == 200


@pytest.mark.parametrize(
    ("version", "status", "want"),
    [
        pytest.param(str(2**64 - 1), 504, "Timeout: Too large resource version: ", id="the largest of 64 bits"),
        pytest.param(str(2**64), 400, 'parsing "18446744073709551616": value out of range', id="one more"),
        pytest.param(DIGITS, 400, "value out of range", id="thousands of digits"),
        pytest.param("abc", 400, 'strconv.ParseUint: parsing "abc": invalid syntax', id="no number"),
    ],
)
def test_resource_versions_are_limited_to_unsigned_64_bit_integers(version: str, status: int, want: str) -> None:
    answer = Client().get(f"{PODS}?resourceVersion={version}")
    assert (answer.status, want in str(answer.at("message"))) == (status, True)


@pytest.mark.parametrize("schedule", [f"{DIGITS} * * * *", f"@every {DIGITS}h"])
def test_cron_schedules_with_huge_numbers_are_refused(schedule: str) -> None:
    with pytest.raises(InputError):
        parse_cron_schedule(schedule)


def test_a_huge_cron_step_matches_one_value() -> None:
    assert parse_cron_schedule(f"*/{DIGITS} * * * *") == parse_cron_schedule(f"*/{10**9} * * * *")


def test_index_sets_and_pending_indexes_handle_billions_of_indexes() -> None:
    found = IndexSet("0-1999999999,2000000001")
    assert (len(found), str(found)) == (2_000_000_001, "0-1999999999,2000000001")
    found.add(2_000_000_000)
    assert (len(found), str(found)) == (2_000_000_002, "0-2000000001")
    found.add(5, 7)
    found.add(2_000_000_005, 2_000_000_003)
    assert len(found) == 2_000_000_002
    pending = PendingIndexes(done="0-1999999999", failed="2000000001")
    assert pending.allocate(2, 2_000_000_010) == [2_000_000_000, 2_000_000_002]


def test_an_amount_that_exceeds_a_float_is_refused() -> None:
    amounts = '{"limits":{"cpu":1E400}}'
    body = f'{{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i","resources":{amounts}}}]}}}}'
    found = Client().call("POST", PODS, body.encode())
    assert found.status == 400
    assert "quantities must match the regular expression" in str(found.at("message"))


@pytest.mark.parametrize(
    ("pages", "amount", "status"),
    [
        pytest.param("hugepages-2Mi", "9223372036854775808", 201, id="beyond 64 bits, a multiple after the overflow"),
        pytest.param("hugepages-2Mi", "3Mi", 422, id="no multiple"),
        pytest.param("hugepages-2m", "4Mi", 422, id="pages of a fraction of a byte"),
    ],
)
def test_huge_pages_are_multiples_of_their_size(pages: str, amount: str, status: int) -> None:
    amounts = {pages: amount, "cpu": "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    assert Client().post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}}).status == status
