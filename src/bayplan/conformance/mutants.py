"""One-field mutants of objects: our answers against those of a real kube-apiserver, by kind.

A file of mutants holds requests with the recorded answers (``conformance/api_mutants/README.md``). The mutants of one kind run on a
fresh store, in process; creates first, then the valid object is stored, then the updates. Every request is a dry run, so none
depends on another. `python -m bayplan.conformance.mutants FILE` prints the agreement.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.store.store import Store
from bayplan.conformance.cases import Json, JsonObject

_VARYING = ("uid", "creationTimestamp", "managedFields", "resourceVersion")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(slots=True)
class KindAgreement:
    """Agreement of the mutants of one kind.

    Attributes:
        mutants: compared.
        verdicts: those with the recorded status.
        agreed: those with the recorded message or object as well.
    """

    mutants: int = 0
    verdicts: int = 0
    agreed: int = 0


@dataclass(slots=True)
class Difference:
    """One mutant that we answer differently.

    Attributes:
        mutant: as recorded.
        status: of our answer.
        answer: our body.
    """

    mutant: JsonObject
    status: int
    answer: JsonObject

    @property
    def sort(self) -> str:
        """The kind of difference: ``lax``, ``strict``, ``status``, ``message`` or ``object``."""
        recorded = cast("int", self.mutant["status"])
        if recorded == self.status:
            return "object" if recorded < 300 else "message"
        if recorded < 300:
            return "strict"
        return "lax" if self.status < 300 else "status"


@dataclass(slots=True)
class Report:
    """The result of a run over mutants."""

    kinds: dict[str, KindAgreement] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    def total(self) -> KindAgreement:
        """Return the sums over all kinds."""
        found = self.kinds.values()
        return KindAgreement(
            sum(each.mutants for each in found),
            sum(each.verdicts for each in found),
            sum(each.agreed for each in found),
        )


def read_mutants(path: Path) -> dict[str, list[JsonObject]]:
    """Return the mutants of a file by kind."""
    kinds: dict[str, list[JsonObject]] = {}
    for line in gzip.decompress(path.read_bytes()).splitlines():
        mutant = cast("JsonObject", msgspec.json.decode(line))
        kinds.setdefault(str(mutant["kind"]), []).append(mutant)
    return kinds


def compare_mutants(kinds: dict[str, list[JsonObject]]) -> Report:
    """Send all mutants and compare the answers."""
    report = Report()
    for kind, mutants in kinds.items():
        asyncio.run(_compare_kind(report, kind, mutants))
    return report


async def _compare_kind(report: Report, kind: str, mutants: Sequence[JsonObject]) -> None:
    counts = report.kinds.setdefault(kind, KindAgreement())
    backend = Backend(Store())
    bootstrap(backend)
    api = Api(backend)
    creates = [each for each in mutants if each["op"] == "create"]
    updates = [each for each in mutants if each["op"] == "update"]
    for mutant in creates:
        _compare(report, counts, mutant, await _send(api, "POST", f"{mutant['path']}", mutant["request"]))
    if not updates:
        return
    base = next((each["request"] for each in mutants if each["op"] == "base"), None)
    if base is None:
        base = common_object(mutants)
    collection = str(updates[0]["path"]).rpartition("/")[0]
    stored = await _send(api, "POST", collection, base, dry_run=False)
    if stored[0] != 201:
        raise AssertionError(f"{kind}: the valid object is refused: {stored[1].get('message')}\n{base}")
    for mutant in updates:
        _compare(report, counts, mutant, await _send(api, "PUT", str(mutant["path"]), mutant["request"]))


async def _send(api: Api, method: str, path: str, body: Json, *, dry_run: bool = True) -> tuple[int, JsonObject]:
    query = {"dryRun": "All"} if dry_run else {}
    headers = {"content-type": "application/json", "user-agent": "conformance/1.0"}
    answer = await api.handle(Request(method, path, query, headers, msgspec.json.encode(body)))
    assert isinstance(answer, Response)
    return answer.status, cast("JsonObject", msgspec.json.decode(answer.body))


def _compare(report: Report, counts: KindAgreement, mutant: JsonObject, answer: tuple[int, JsonObject]) -> None:
    status, body = answer
    counts.mutants += 1
    agreed = verdict = status == mutant["status"]
    if verdict and status >= 300:
        causes = cast("JsonObject", body.get("details") or {}).get("causes") or []
        ours = _masked([body.get("message"), body.get("reason"), causes], set())
        agreed = ours == _masked([mutant.get("message"), mutant.get("reason"), mutant.get("causes") or []], set())
    elif verdict:
        sent = set(_TIME.findall(msgspec.json.encode(mutant["request"]).decode()))
        agreed = _masked(_bare(body), sent) == _masked(mutant["object"], sent)
    counts.verdicts += verdict
    counts.agreed += agreed
    if not agreed:
        report.differences.append(Difference(mutant, status, body))


def _bare(body: JsonObject) -> Json:
    metadata = cast("JsonObject", body.get("metadata") or {})
    return {**body, "metadata": {name: value for name, value in metadata.items() if name not in _VARYING}}


def _masked(value: Json, sent: set[str]) -> Json:
    """Mask uids, and times that the client did not send."""
    if isinstance(value, dict):
        return {name: _masked(item, sent) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, sent) for item in value]
    if isinstance(value, str):
        value = _UID.sub("<uid>", value)
        return "<time>" if _TIME.fullmatch(value) and value not in sent else value
    return value


# --- the valid object -------------------------------------------------------------------------------------------------


def common_object(mutants: Sequence[JsonObject]) -> Json:
    """Return the object of which these are one-field mutants: at each place what those have that don't mutate it."""
    return _common([(each["request"], str(each["mutation"]).partition(" ")[0]) for each in mutants])


def _common(values: list[tuple[Json, str]]) -> Json:
    """Return the common part of values.

    Args:
        values: each with the path within it that was mutated, or an empty one.
    """
    kind = Counter(type(each) for each, _ in values).most_common(1)[0][0]
    same = [(each, path) for each, path in values if type(each) is kind]
    if kind is dict:
        documents = [(cast("JsonObject", each), path) for each, path in same]
        found: JsonObject = {}
        for name in dict.fromkeys(name for each, _ in documents for name in each):
            found[name] = _common_part([(each.get(name), path) for each, path in documents], name)
        return {name: value for name, value in found.items() if value is not None}
    if kind is list:
        lists = [(cast("list[Json]", each), path) for each, path in same]
        length = Counter(len(each) for each, _ in lists).most_common(1)[0][0]
        lists = [(each, path) for each, path in lists if len(each) == length]
        return [_common_part([(each[index], path) for each, path in lists], str(index)) for index in range(length)]
    return Counter(each for each, _ in same).most_common(1)[0][0]


def _common_part(values: list[tuple[Json, str]], name: str) -> Json:
    inside = [
        (value, path[len(name) + 1 :] if path.startswith(f"{name}.") else "") for value, path in values if path != name
    ]
    return _common(inside or [(value, "") for value, _ in values])


# --- the printed report -----------------------------------------------------------------------------------------------


def _lines(report: Report, shown: int, sorts: Iterable[str]) -> Iterable[str]:
    for name, counts in [*sorted(report.kinds.items()), ("all", report.total())]:
        yield (
            f"{name:20} {counts.mutants:5} mutants, verdict {100 * counts.verdicts / counts.mutants:6.2f} %, "
            f"everything {100 * counts.agreed / counts.mutants:6.2f} %"
        )
    yield " ".join(f"{sort}: {count}" for sort, count in Counter(each.sort for each in report.differences).items())
    wanted = [each for each in report.differences if each.sort in sorts]
    for each in wanted[:shown]:
        mutant = each.mutant
        yield f"\n[{each.sort}] {mutant['kind']} {mutant['op']} {str(mutant['mutation'])[:160]}"
        if each.sort == "object":
            sent = set(_TIME.findall(msgspec.json.encode(mutant["request"]).decode()))
            yield from _object_lines(_masked(mutant["object"], sent), _masked(_bare(each.answer), sent), "")
            continue
        yield f"  want {mutant['status']} {mutant.get('message', '')}"
        yield f"  got  {each.status} {each.answer.get('message', '')}"


def _object_lines(want: Json, got: Json, path: str) -> Iterable[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for name in dict.fromkeys([*want, *got]):
            yield from _object_lines(want.get(name), got.get(name), f"{path}.{name}")
    elif want != got:
        yield f"  {path}: want {msgspec.json.encode(want).decode()[:300]} got {msgspec.json.encode(got).decode()[:300]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the mutants of a file and print the agreement by kind."""
    parser = argparse.ArgumentParser(prog="python -m bayplan.conformance.mutants", description=main.__doc__)
    parser.add_argument("file", type=Path, help="JSON lines, gzipped")
    parser.add_argument("--kind", action="append", help="compare only this kind [default: all]")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N differences")
    parser.add_argument("--sort", action="append", help="print only lax, strict, status, message or object")
    options = parser.parse_args(arguments)
    kinds = read_mutants(options.file)
    if options.kind:
        kinds = {name: mutants for name, mutants in kinds.items() if name in options.kind}
    sorts = options.sort or ["lax", "strict", "status", "message", "object"]
    for line in _lines(compare_mutants(kinds), options.show, sorts):
        print(line)


if __name__ == "__main__":
    main()
