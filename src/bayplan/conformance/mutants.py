"""One-field mutants of objects: Bayplan's responses compared with those of a real kube-apiserver, by kind.

A file of mutants has requests with the recorded responses (``conformance/api_mutants/README.md``). The mutants of one
valid object run on a fresh store, in process: first the creates, then the valid object is stored, then all other
requests. All requests except those that store are dry runs, so none depends on another. `python -m
bayplan.conformance.mutants FILE` prints the agreement.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec

from bayplan.apiserver.http.application import Application
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.store.store import Store
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.exchanges import masked_at
from bayplan.conformance.in_process import send

_VARYING = ("uid", "creationTimestamp", "resourceVersion")
_KEEPING = ("patch", "apply", "status", "scale", "sub")
"""Requests whose responses are compared with their managed fields."""
_PORT = re.compile(r"3[0-2]\d\d\d")
"""A number that may be a node port. Ports that no request sets are random."""
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"\d+[smh](\d+[sm])?")
_EPOCH = 1_767_225_600.0
_METHODS = {"create": "POST", "update": "PUT"}
_PARTS = ("status", "message", "reason", "causes", "object", "text", "warning", "content-type")


@dataclass(slots=True)
class KindAgreement:
    """Agreement of the mutants of one kind.

    Attributes:
        mutants: the number of compared mutants.
        verdicts: the number of responses with the recorded status.
        agreed: the number of responses in which all other compared parts are as recorded, too.
    """

    mutants: int = 0
    verdicts: int = 0
    agreed: int = 0


@dataclass(slots=True)
class Difference:
    """One mutant with a response that differs.

    Attributes:
        mutant: the recorded mutant.
        wanted: the parts of the recorded response, with varying values masked.
        answer: the same parts of Bayplan's response.
    """

    mutant: JsonObject
    wanted: JsonObject
    answer: JsonObject

    @property
    def sort(self) -> str:
        """The kind of the difference.

        ``lax`` (only Bayplan accepts), ``strict`` (only Bayplan refuses), ``status``, ``message``, ``object``,
        ``text``, ``warning`` or ``content-type``.
        """
        recorded, status = cast("int", self.wanted["status"]), cast("int", self.answer["status"])
        if recorded == status:
            found = next(name for name in _PARTS if self.wanted.get(name) != self.answer.get(name))
            return "message" if found in ("reason", "causes") else found
        if recorded < 300:
            return "strict"
        return "lax" if status < 300 else "status"


@dataclass(slots=True)
class Report:
    """The result of a run over mutants: agreement by kind, and all differences."""

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
    """Return the mutants of a file, by the valid object that they were derived from."""
    bases: dict[str, list[JsonObject]] = {}
    for line in gzip.decompress(path.read_bytes()).splitlines():
        mutant = cast("JsonObject", msgspec.json.decode(line))
        bases.setdefault(str(mutant.get("base") or mutant["kind"]), []).append(mutant)
    return bases


def compare_mutants(bases: dict[str, list[JsonObject]], *, by: str = "kind") -> Report:
    """Send all mutants, compare the responses, and return the result.

    Args:
        bases: see `read_mutants`.
        by: the key by which agreement is counted: ``kind``, ``base`` or ``op``.
    """
    report = Report()
    for base, mutants in bases.items():
        asyncio.run(_BaseRun(report, base, by).run(mutants))
    return report


class _BaseRun:
    """The mutants of one valid object on a fresh store."""

    def __init__(self, report: Report, base: str, by: str) -> None:
        self._report, self._base, self._by = report, base, by
        self._now = _EPOCH
        backend = Backend(Store(), clock=lambda: self._now)
        bootstrap(backend)
        self._application = Application(Api(backend))
        self._captured = ""

    async def run(self, mutants: Sequence[JsonObject]) -> None:
        for each in mutants:
            if each["op"] == "base" and each["mutation"] == "namespace":
                await self._send(each, dry_run=False)
        creates = [each for each in mutants if each["op"] == "create"]
        rest = [each for each in mutants if each["op"] not in ("create", "base")]
        for mutant in creates:
            await self._compare(mutant)
        if not rest:
            return
        stored = [each for each in mutants if each["op"] == "base"]
        if not stored:
            collection = str(rest[0]["path"]).rpartition("/")[0]
            stored = [
                {"op": "base", "method": "POST", "path": collection, "mutation": "", "request": common_object(mutants)}
            ]
        for base in stored:
            if base["mutation"] != "namespace":
                await self._store(base)
        # Times order the managers of fields, so later requests are sent later.
        self._now += 60
        for mutant in rest:
            await self._compare(mutant)

    async def _store(self, base: JsonObject) -> None:
        response = await self._send(base, dry_run=False)
        body = cast("JsonObject", response.get("body"))
        if cast("int", response["status"]) < 300:
            self._captured = str(cast("JsonObject", body["metadata"])["resourceVersion"])
        elif "status" not in base:
            raise AssertionError(f"{self._base}: the valid object is refused: {body.get('message')}\n{base['request']}")
        if "status" in base:
            self._count(base, response)

    async def _send(self, mutant: JsonObject, *, dry_run: bool) -> JsonObject:
        method = str(mutant.get("method") or _METHODS[str(mutant["op"])])
        path, body = str(mutant["path"]), mutant.get("request")
        if dry_run and method != "GET" and "dryRun=" not in path:
            path += ("&" if "?" in path else "?") + "dryRun=All"
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        headers |= cast("dict[str, str]", mutant.get("headers") or {})
        if mutant["op"] == "base" and method == "PUT":
            document = cast("JsonObject", body)
            metadata = {**cast("JsonObject", document["metadata"]), "resourceVersion": self._captured}
            body = {**document, "metadata": metadata}
        data = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
        data = data.replace(b"${rv}", self._captured.encode())
        sent = {name: value for name, value in headers.items() if value}
        return await send(self._application, method, path, sent, data)

    async def _compare(self, mutant: JsonObject) -> None:
        self._count(mutant, await self._send(mutant, dry_run=True))

    def _count(self, mutant: JsonObject, response: JsonObject) -> None:
        counts = self._report.kinds.setdefault(str(mutant.get(self._by, mutant["kind"])), KindAgreement())
        wanted, ours = compared_parts(mutant, response)
        counts.mutants += 1
        counts.verdicts += wanted["status"] == ours["status"]
        counts.agreed += wanted == ours
        if wanted != ours:
            self._report.differences.append(Difference(mutant, wanted, ours))


def compared_parts(mutant: JsonObject, response: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the compared parts of the recorded response and of Bayplan's, with varying values masked.

    Args:
        mutant: as recorded.
        response: Bayplan's response, as returned by `in_process.send`.
    """
    has_headers = "base" in mutant
    wanted: JsonObject = {name: mutant[name] for name in _PARTS if name in mutant}
    if "text" in wanted:
        wanted["text"] = wanted["text"] or ""
    ours = _answer_parts(response, has_headers=has_headers)
    if "message" in wanted or "message" in ours:
        for parts in (wanted, ours):
            parts["causes"] = parts.get("causes") or []
    for pointer in cast("list[str]", mutant.get("variable") or []):
        wanted, ours = cast("tuple[JsonObject, JsonObject]", masked_at(wanted, ours, pointer))
    keeps_fields = mutant["op"] in _KEEPING
    text = msgspec.json.encode(mutant.get("request")).decode()
    sent = frozenset(found[0] for found in (*_TIME.finditer(text), *_PORT.finditer(text)))
    return tuple(cast("JsonObject", _masked(each, sent, keeps_fields=keeps_fields)) for each in (wanted, ours))  # type: ignore[return-value]


def _answer_parts(response: JsonObject, *, has_headers: bool) -> JsonObject:
    status, body = cast("int", response["status"]), response.get("body")
    headers = cast("dict[str, str]", response["headers"])
    found: JsonObject = {"status": status}
    if has_headers and "warning" in headers:
        found["warning"] = headers["warning"]
    if has_headers and headers.get("content-type") != "application/json":
        found["content-type"] = headers.get("content-type")
    if status >= 300 and isinstance(body, dict):
        details = cast("JsonObject", body.get("details") or {})
        found |= {name: body[name] for name in ("message", "reason") if name in body}
        found["causes"] = details.get("causes") or []
    elif isinstance(body, dict):
        found["object"] = body
    else:
        found["text"] = body or ""
    return found


def _masked(value: Json, sent: frozenset[str], *, keeps_fields: bool) -> Json:
    """Mask metadata that differs from run to run, uids, and times and node ports that the client did not send."""
    if isinstance(value, dict):
        found = {name: _masked(item, sent, keeps_fields=keeps_fields) for name, item in value.items()}
        metadata = found.get("metadata")
        if isinstance(metadata, dict):
            drop = _VARYING if keeps_fields else (*_VARYING, "managedFields")
            found["metadata"] = {name: item for name, item in metadata.items() if name not in drop}
        if not keeps_fields and isinstance(found.get("nodePort"), int) and str(found["nodePort"]) not in sent:
            found["nodePort"] = "<allocated>"
        if isinstance(found.get("cells"), list):
            found["cells"] = [
                "<age>" if _AGE.fullmatch(str(each)) else each for each in cast("list[Json]", found["cells"])
            ]
        if isinstance(found.get("columnDefinitions"), list):
            # Descriptions of columns are upstream's prose; Bayplan has its own.
            found["columnDefinitions"] = [
                {**cast("JsonObject", each), "description": ""}
                for each in cast("list[Json]", found["columnDefinitions"])
            ]
        return found
    if isinstance(value, list):
        return [_masked(item, sent, keeps_fields=keeps_fields) for item in value]
    if isinstance(value, str):
        value = _UID.sub("<uid>", value)
        return "<time>" if _TIME.fullmatch(value) and value not in sent else value
    return value


# --- the printed report -----------------------------------------------------------------------------------------------


def _lines(report: Report, shown: int, sorts: Iterable[str]) -> Iterator[str]:
    for name, counts in [*sorted(report.kinds.items()), ("all", report.total())]:
        yield (
            f"{name:30} {counts.mutants:5} mutants, verdict {100 * counts.verdicts / counts.mutants:6.2f} %, "
            f"everything {100 * counts.agreed / counts.mutants:6.2f} %"
        )
    yield " ".join(f"{sort}: {count}" for sort, count in Counter(each.sort for each in report.differences).items())
    wanted = [each for each in report.differences if not sorts or each.sort in sorts]
    for each in wanted[:shown]:
        mutant = each.mutant
        yield f"\n[{each.sort}] {mutant.get('base') or mutant['kind']} {mutant['op']} {str(mutant['mutation'])[:160]}"
        yield from _differing(each.wanted, each.answer, "")


def _differing(want: Json, got: Json, path: str) -> Iterator[str]:
    if isinstance(want, dict) and isinstance(got, dict):
        for name in dict.fromkeys([*want, *got]):
            if name not in ("causes", "reason") or want.get("message") == got.get("message"):
                yield from _differing(want.get(name), got.get(name), f"{path}.{name}")
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for index, (one, other) in enumerate(zip(want, got, strict=True)):
            yield from _differing(one, other, f"{path}[{index}]")
    elif want != got:
        yield f"  {path[1:]}"
        yield from _apart(msgspec.json.encode(want).decode(), msgspec.json.encode(got).decode())


def _apart(want: str, got: str) -> Iterator[str]:
    """Yield two texts from shortly before their first difference."""
    same = next(
        (at for at, (one, other) in enumerate(zip(want, got, strict=False)) if one != other), min(len(want), len(got))
    )
    first = max(0, same - 100) if same > 120 else 0
    dots = "..." if first else ""
    yield f"    want {dots}{want[first : same + 300]}"
    yield f"    got  {dots}{got[first : same + 300]}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the mutants of a file and print the agreement by kind."""
    parser = argparse.ArgumentParser(prog="python -m bayplan.conformance.mutants", description=main.__doc__)
    parser.add_argument("file", type=Path, help="JSON lines, gzipped")
    parser.add_argument("--kind", action="append", help="compare only this kind [default: all]")
    parser.add_argument(
        "--op", action="append", help="compare only these requests: create, update, patch ... [default: all]"
    )
    parser.add_argument("--by", default="kind", choices=("kind", "base", "op"), help="what to count by [default: kind]")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N differences")
    parser.add_argument("--sort", action="append", help="print only lax, strict, status, message, object, warning ...")
    options = parser.parse_args(arguments)
    bases = read_mutants(options.file)
    if options.kind:
        bases = {name: mutants for name, mutants in bases.items() if mutants[0]["kind"] in options.kind}
    if options.op:
        wanted = ("base", *options.op)
        bases = {name: [each for each in mutants if each["op"] in wanted] for name, mutants in bases.items()}
    for line in _lines(compare_mutants(bases, by=options.by), options.show, options.sort or ()):
        print(line)


def common_object(mutants: Sequence[JsonObject]) -> Json:
    """Return the original object of its one-field mutants, each field from the mutants that do not change it."""
    return _common([(each["request"], str(each["mutation"]).partition(" ")[0]) for each in mutants])


def _common(values: list[tuple[Json, str]]) -> Json:
    """Return the most common value of several values, merged field by field.

    Args:
        values: the values, each with the path that is mutated in it, "" if none is.
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


if __name__ == "__main__":
    main()
