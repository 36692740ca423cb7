"""The command ``conformance``, end to end, with an engine of the test instead of Bayplan's."""

import gzip
import re
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from bayplan.cli.main import main
from bayplan.conformance import answers
from bayplan.conformance.cases import JsonObject
from tests.conformance.recorded import placed_cycle, put, recorded, write_cases
from tests.project.tree import ROOT


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four cases: right, wrong in a score, crashing, right."""
    recordings = [recorded(placed_cycle(), name=f"made/{n}") for n in range(4)]

    def answer(case: JsonObject) -> JsonObject:
        number = int(str(case["id"])[-1])
        if number == 2:
            raise ZeroDivisionError("no zones")
        ours: JsonObject = {"id": case["id"], "kubernetes": "v1.36.3", "error": None, "cycles": [placed_cycle()]}
        if number == 1:
            put(ours, ("cycles", 0, "scores", "NodeResourcesFit", "raw", "n1"), 36)
        return ours

    module = ModuleType("engine_of_a_test")
    module.answer = answer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "engine_of_a_test", module)
    monkeypatch.setitem(answers.ANSWERERS, "cycles", ("engine_of_a_test", "answer"))
    answers._answerer.cache_clear()
    return write_cases(tmp_path / "made.jsonl", *recordings)


def test_the_report_contains_the_agreement_and_first_differences(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conformance", str(cases)]) == 1
    out = capsys.readouterr().out
    assert "2 of 4 cases agree (50 %)" in out
    assert "cycle 0 default/web NodeResourcesFit.raw.n1\n" in out
    assert "  want  37\n  got   36\n" in out
    assert "ZeroDivisionError: no zones (test_conformance.py:" in out
    (plugin_row,) = [line.split() for line in out.splitlines() if line.startswith("TaintToleration")]
    assert plugin_row == ["TaintToleration", "4", "3", "75", "%"]


def test_full_agreement_exits_with_code_0(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", str(cases), "--only", "made/0"]) == 0
    assert "1 of 1 cases agree (100 %)" in capsys.readouterr().out


def test_json_output_has_the_documented_keys(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--json", str(cases)]) == 1
    out = msgspec.json.decode(capsys.readouterr().out)
    assert list(out) == ["cases", "agreed", "families", "differences"]
    assert (out["cases"], out["agreed"]) == (4, 2)
    assert list(out["families"]["made"]) == ["cases", "agreed", "parts"]
    assert [(each["id"], each["part"]) for each in out["differences"]] == [("made/1", "scores"), ("made/2", "answer")]
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block is not None
    shown = msgspec.json.decode(block[1])
    assert list(shown) == list(out)
    (family,) = shown["families"].values()
    assert list(family) == list(out["families"]["made"])
    assert list(family["parts"]["scores"]) == list(out["families"]["made"]["parts"]["scores"])
    assert [list(each) for each in shown["differences"]] == [list(out["differences"][0])]


@pytest.mark.parametrize("name", ["ours.jsonl", "ours.jsonl.gz"])
def test_answers_are_written_one_per_line_in_case_order(cases: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    assert main(["conformance", str(cases), "--answers", str(target)]) == 1
    data = target.read_bytes()
    lines = (gzip.decompress(data) if name.endswith(".gz") else data).splitlines()
    assert [msgspec.json.decode(line)["id"] for line in lines] == [f"made/{n}" for n in range(4)]
    assert "failure" in msgspec.json.decode(lines[2])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.jsonl", name]


def test_invalid_input_exits_with_code_2_and_writes_no_answers(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(cases.read_bytes() + b"{oops\n")
    target = tmp_path / "ours.jsonl"
    assert main(["conformance", str(broken), "--answers", str(target)]) == 2
    assert f"bayplan: {broken}:5 not a recorded case" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.jsonl", "made.jsonl"]
    assert main(["conformance", str(cases), "--only", "nothing"]) == 2
    assert main(["conformance", str(tmp_path / "missing.jsonl")]) == 2
    assert main(["conformance"]) == 2


def test_answers_never_overwrite_recorded_cases(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = cases.read_bytes()
    assert main(["conformance", str(cases), "--answers", str(cases.parent / "." / cases.name)]) == 2
    assert "--answers: expected another file, got" in capsys.readouterr().err
    assert cases.read_bytes() == before
    assert main(["conformance", str(cases), "--answers", str(cases.parent / "none" / "x.jsonl")]) == 2


def test_percentages_are_truncated_so_only_full_agreement_is_100() -> None:
    from bayplan.cli.conformance import _percent

    assert [_percent(*pair) for pair in [(2, 3), (9999, 10000), (3, 3), (0, 5)]] == ["66.6 %", "99.9 %", "100 %", "0 %"]
