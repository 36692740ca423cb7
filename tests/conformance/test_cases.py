"""Reading recorded cases: formats of files, kinds of records, and what is refused."""

import gzip
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.conformance.cases import JsonObject, kind_of, read_case_files
from bayplan.conformance.victims import victim_ranks
from tests.conformance.recorded import placed_cycle, recorded, write_cases
from tests.shared import RECORDINGS

KINDS: list[tuple[str, JsonObject, str]] = [
    ("a cycle case", {"case": {"pods": []}, "want": {"cycles": []}}, "cycles"),
    ("a cycle case of 1.16", {"case": {"pods": []}, "want": {"cycles": [], "kubernetes": "v1.16.15"}}, "classic"),
    ("a refused policy", {"case": {"pods": [], "policy": {}}, "want": {"cycles": None, "error": "x"}}, "classic"),
    ("a queue trace", {"case": {"ops": []}, "want": {"steps": []}}, "queue"),
    ("a queue trace of 1.16", {"case": {"ops": []}, "want": {"steps": [], "kubernetes": "v1.16.15"}}, "classic-queue"),
    ("a configuration", {"case": {"yaml": ""}, "want": {"stage": None}}, "config"),
    ("a hint table", {"case": {"plugin": "NodeName"}, "want": {"events": []}}, "hints"),
    ("a list of registrations", {"case": {"list": True}, "want": {"plugins": {}}}, "hints"),
    ("an exchange", {"id": "pods/1", "request": {}, "response": {}}, "api"),
    ("a session of a client", {"session": "kubectl get pods", "exchanges": []}, "api-session"),
    ("a run of the simulator", {"id": "x", "annotations": {}, "steps": []}, "annotations"),
    ("a request to the simulator", {"run": "plain", "request": {}, "status": 200}, "annotations-api"),
    ("a scenario end to end", {"id": "fits", "observed": {}, "steps": []}, "e2e"),
    ("facts", {"actionTypes": {}, "plugins": {}}, "facts"),
    ("something else", {"hello": 1}, ""),
    ("a case of no known shape", {"case": {"x": 1}, "want": {"y": 1}}, ""),
    ("a case without an answer", {"case": {"pods": []}}, ""),
]


@pytest.mark.parametrize(("record", "want"), [each[1:] for each in KINDS], ids=[each[0] for each in KINDS])
def test_the_kind_of_a_case_is_detected_from_its_content(record: JsonObject, want: str) -> None:
    assert kind_of(record) == want


def test_gzipped_files_yield_the_same_cases(tmp_path: Path) -> None:
    plain = write_cases(tmp_path / "plain.jsonl", recorded(placed_cycle()), recorded(placed_cycle(), name="other/1"))
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    first, second = ([(case.id, case.family, case.note) for case in each] for each in read_case_files([plain, packed]))
    assert first == second == [("family/h0001", "family", "made for a test"), ("other/1", "other", "made for a test")]


def test_a_folder_is_read_file_by_file_and_an_object_may_span_lines(tmp_path: Path) -> None:
    write_cases(tmp_path / "b.jsonl", recorded(placed_cycle(), name="b/1"))
    (tmp_path / "a.jsonl").write_text('{\n "id": "fits",\n "observed": {},\n "steps": []\n}\n')
    (tmp_path / "README.md").write_text("not a case")
    cases = [case for each in read_case_files([tmp_path]) for case in each]
    assert [(case.kind, case.id, case.family) for case in cases] == [("e2e", "fits", "e2e"), ("cycles", "b/1", "b")]
    assert cases[1].where == f"{tmp_path}/b.jsonl:1"


BAD_FILES: list[tuple[str, bytes, str]] = [
    ("an empty file", b"", "got an empty file"),
    ("blank lines only", b"\n \n", "got an empty file"),
    ("text", b"# Title\n", "not a recorded case"),
    ("a broken line", b'{"case": {"pods": []}, "want": {"cycles": []}}\n{"case": \n', ":2 not a recorded case"),
    ("an array", b"[1, 2]\n", "not a recorded case"),
    ("a record of another kind", b'{"hello": 1}\n', "an object with hello"),
    ("bytes that are not UTF-8", b'{"a": "\xff\xfe"}\n', "not a recorded case"),
    ("a cut gzip file", gzip.compress(b'{"hello": 1}\n' * 50)[:-20], "broken gzip file"),
    ("a damaged gzip file", b"\x1f\x8b" + b"\x00" * 40, "broken gzip file"),
]


@pytest.mark.parametrize(("data", "want"), [each[1:] for each in BAD_FILES], ids=[each[0] for each in BAD_FILES])
def test_invalid_files_are_refused_with_file_and_line(tmp_path: Path, data: bytes, want: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(data)
    with pytest.raises(InputError) as refused:
        [case for each in read_case_files([path]) for case in each]
    assert want in str(refused.value)
    assert str(path) in str(refused.value)


def test_missing_paths_and_folders_without_cases_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(InputError, match=str(path)):
            read_case_files([path])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "cases.jsonl"
    path.write_bytes(data)
    try:
        cases = [case for each in read_case_files([path]) for case in each]
    except InputError:
        return
    assert all(case.kind for case in cases)


def test_all_recordings_have_a_known_kind() -> None:
    counts: dict[str, int] = {}
    # Mutants of API objects have another format, and agreement.json is a result.
    others = {"api_mutants", RECORDINGS.name}
    for path in sorted(path for path in RECORDINGS.rglob("*.jsonl.gz") if path.parent.name not in others):
        for case in read_case_files([path])[0]:
            counts[case.kind] = counts.get(case.kind, 0) + 1
    assert {name for name, number in counts.items() if number > 100} == {
        "cycles",
        "classic",
        "queue",
        "hints",
        "config",
        "api",
        "extenders",
    }


def test_victims_are_ranked_by_priority_and_start_time() -> None:
    case: JsonObject = msgspec.json.decode(
        b"""{"objects": [
        {"kind": "PriorityClass", "metadata": {"name": "gold"}, "value": 7},
        {"kind": "PriorityClass", "metadata": {"name": "usual"}, "value": 3, "globalDefault": true},
        {"kind": "Pod", "metadata": {"name": "a", "namespace": "ns"}, "spec": {"priorityClassName": "gold"}},
        {"kind": "Pod", "metadata": {"name": "b"}, "spec": {}, "status": {"startTime": "2026-01-01T00:00:00Z"}},
        {"kind": "Pod", "metadata": {"name": "c"}, "spec": {"priority": -1, "priorityClassName": "gold"}},
        {"kind": "Pod", "metadata": {"name": "d"}, "spec": {"priorityClassName": "system-node-critical"}}]}"""
    )
    assert victim_ranks(case) == {
        "ns/a": (7, ""),
        "default/b": (3, "2026-01-01T00:00:00Z"),
        "default/c": (-1, ""),
        "default/d": (2_000_001_000, ""),
    }
