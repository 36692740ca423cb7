"""Recorded cases: reads their files and detects the kind of each case from its content. Compares nothing.

A file has JSON lines, gzipped or plain, or one JSON object in many lines. Most kinds are ``{"case": ..., "want":
...}``; recordings of HTTP exchanges and of whole runs are one object that contains both.
"""

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import msgspec

from bayplan.base.errors import InputError
from bayplan.formats.bounded_reading import max_file_bytes, read_bounded

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, Json]

_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d")

UNPAIRED_KINDS: tuple[tuple[str, frozenset[str]], ...] = (
    ("api", frozenset({"request", "response"})),
    ("api-session", frozenset({"session", "exchanges"})),
    ("annotations", frozenset({"annotations", "steps"})),
    ("annotations-api", frozenset({"request", "status", "run"})),
    ("e2e", frozenset({"observed", "steps"})),
    ("facts", frozenset({"kubernetes", "constants"})),
    ("facts", frozenset({"actionTypes", "plugins"})),
)
"""Kinds whose records are not ``{"case", "want"}``, and the keys that identify them; the first match counts."""

_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A question to a real scheduler (or API server), and its answer.

    Attributes:
        kind: the kind of question: ``cycles``, ``classic``, ``queue``, ``hints``, ``config``, ``api``, ...
        id: the name of the case, unique within its kind.
        family: the group in which the case is counted.
        note: the purpose of the case; may be empty.
        where: the file and line, for messages.
        case: the question.
        want: the recorded answer.
    """

    kind: str
    id: str
    family: str
    note: str
    where: str
    case: JsonObject
    want: JsonObject


class Scenario(list[Json]):
    """The recorded HTTP exchanges of one file, in order. Each is answered after those before it."""

    @cached_property
    def times_sent(self) -> frozenset[str]:
        """The times, to the second, that clients sent: inputs, not readings of the clock."""
        exchanges = [each for each in self if isinstance(each, dict)]
        requests = [each.get(name) for each in exchanges for name in ("request", "template")]
        return frozenset(_TIME.findall(msgspec.json.encode(requests).decode()))


@dataclass(frozen=True, slots=True)
class CaseFile:
    """The records of one file; iterating decodes them one by one.

    Iterating raises `InputError` for a line that is not JSON or not a record of a known kind.
    """

    path: str
    records: tuple[tuple[int, bytes], ...]

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[RecordedCase]:
        scenario = Scenario()
        for line_number, data in self.records:
            case = _decode(data, f"{self.path}:{line_number}")
            if case.kind == "api":
                scenario = scenario or Scenario(msgspec.json.decode(each) for _, each in self.records)
                case.case["scenario"] = scenario
            yield case


def read_case_files(paths: Sequence[Path]) -> list[CaseFile]:
    """Read files of recorded cases in the given order; a folder means its ``.jsonl`` and ``.jsonl.gz`` files.

    Raises:
        InputError: a path does not exist or cannot be read, a gzip file is damaged, or a file has no cases.
    """
    files = []
    for path in paths:
        if path.is_dir():
            inside = sorted((*path.glob("*.jsonl"), *path.glob("*.jsonl.gz")))
            if not inside:
                raise InputError("folder", where=str(path), wanted="files named *.jsonl or *.jsonl.gz", got="none")
            files += [_read(each) for each in inside]
        else:
            files.append(_read(path))
    return files


def kind_of(record: JsonObject) -> str:
    """Return the kind of a record, from its content; an empty string if it is unknown."""
    case, want = record.get("case"), record.get("want")
    if isinstance(case, dict) and isinstance(want, dict):
        return _kind_of_pair(case, want)
    for kind, keys in UNPAIRED_KINDS:
        if keys <= record.keys():
            return kind
    return ""


def _kind_of_pair(case: JsonObject, want: JsonObject) -> str:
    release = want.get("kubernetes")
    # Releases after 1.16, the recorded one, replaced predicates and priorities by plugins.
    classic = isinstance(release, str) and release.startswith(("v1.16.", "1.16."))
    if "sampled" in want and "pods" in case:
        return "sampled"
    if "extended" in want and "pods" in case:
        return "extenders"
    if "cycles" in want and "pods" in case:
        return "classic" if classic or "policy" in case or "provider" in case else "cycles"
    if "steps" in want and "ops" in case:
        return "classic-queue" if classic else "queue"
    if "yaml" in case:
        return "config"
    if "plugin" in case or "list" in case:
        return "hints"
    return ""


def _read(path: Path) -> CaseFile:
    try:
        with path.open("rb") as file:
            data = read_bounded(file, str(path), max_file_bytes())
    except OSError as error:
        raise InputError(f"{path}: can't read the recorded cases: {error.strerror}") from error
    if data.startswith(_GZIP_MAGIC):
        try:
            data = read_bounded(gzip.GzipFile(fileobj=io.BytesIO(data)), str(path), max_file_bytes())
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"broken gzip file ({error})", where=str(path)) from error
    records = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    if not records:
        raise InputError(
            "file", where=str(path), got="an empty file", wanted="recorded cases, one JSON object per line"
        )
    if len(records) > 1 and not _is_json(records[0][1]) and _is_json(data):
        records = [(1, data)]
    return CaseFile(str(path), tuple(records))


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _decode(data: bytes, where: str) -> RecordedCase:
    try:
        record = msgspec.json.decode(data, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            "not a recorded case", where=where, wanted="one JSON object per line", got=str(error)
        ) from error
    return _recorded_case(record, where)  # type: ignore[arg-type]  # What JSON decodes to is Json.


def _recorded_case(record: JsonObject, where: str) -> RecordedCase:
    kind = kind_of(record)
    if not kind:
        raise InputError(
            "record of an unknown kind",
            where=where,
            got=f"an object with {', '.join(sorted(record)[:6]) or 'no keys'}",
            wanted='{"case": ..., "want": ...} of a known kind',
        )
    case, want = record.get("case", record), record.get("want", record)
    assert isinstance(case, dict)
    assert isinstance(want, dict)
    number, family, note = case.get("id"), case.get("family"), case.get("note")
    name = number if isinstance(number, str) else where
    if not isinstance(family, str):
        family = name.split("/")[0] if "/" in name and number == name else kind
    return RecordedCase(
        kind=kind,
        id=name,
        family=family,
        note=note if isinstance(note, str) else "",
        where=where,
        case=case,
        want=want,
    )
