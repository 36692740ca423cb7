"""The agreement table and its text: each count is in the right row, and the rest of the document does not change."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bayplan.base.errors import InputError
from bayplan.conformance.agreement import (
    AgreementTable,
    FamilyAgreement,
    PartAgreement,
    encode_table,
    measure_all,
    read_table,
)
from bayplan.conformance.cases import JsonObject
from bayplan.conformance.fidelity import BEGIN, END, report, with_table


def write_hints(folder: Path, **answers: str) -> None:
    """Write hint cases of NodeName, which registers Node/Add without a hint, with these recorded answers."""
    lines = []
    for name, answer in answers.items():
        node: JsonObject = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
        pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
        registered: JsonObject = {"resource": "Node", "actions": ["Add"], "function": False}
        event: JsonObject = {
            "event": {"resource": "Node", "actions": ["Add"]},
            "hints": [{"registered": registered, "answer": answer, "error": None}],
            "answer": answer,
        }
        case: JsonObject = {"id": f"hints/x/{name}", "plugin": "NodeName", "pod": pod, "old": None, "new": node}
        want: JsonObject = {"id": f"hints/x/{name}", "error": None, "events": [event]}
        lines.append(msgspec.json.encode({"case": case, "want": want}))
    (folder / "hints").mkdir()
    (folder / "hints" / "tables.jsonl").write_bytes(b"\n".join(lines))
    (folder / "hints" / "tables.jsonl.gz").write_bytes(b"\n".join(lines))


def test_agreement_is_measured_by_file_and_family(tmp_path: Path) -> None:
    write_hints(tmp_path, right="Queue", wrong="Skip")
    table = measure_all(tmp_path)
    parts = {"error": PartAgreement(2, 2), "events": PartAgreement(2, 1), "events/NodeName": PartAgreement(2, 1)}
    assert table == AgreementTable({"hints/tables.jsonl.gz": {"NodeName": FamilyAgreement(2, 1, parts)}})
    (tmp_path / "agreement.json").write_bytes(encode_table(table))
    assert read_table(tmp_path) == table
    assert b'"events": {"checks": 2, "agreed": 1},\n' in encode_table(table)


TABLE = AgreementTable(
    {
        "cycles/a.jsonl.gz": {
            "a": FamilyAgreement(
                3,
                2,
                {
                    "followed": PartAgreement(1999, 1999),
                    "scores": PartAgreement(1999, 1998),
                    "scores/Q": PartAgreement(1999, 1998),
                    "filterAll/P": PartAgreement(4, 4),
                },
            )
        },
        "hints/a.jsonl.gz": {"P": FamilyAgreement(5, 5, {"events/P": PartAgreement(5, 5)})},
    }
)


@pytest.mark.parametrize(
    "want",
    [
        pytest.param("| `cycles` | 3 | 2 | 66.7 % | 1,999 cycles |", id="a kind, its share rounded"),
        pytest.param("| all | 8 | 7 | 87.5 % |  |", id="all kinds"),
        pytest.param("| `a` | 3 | 2 | 66.7 % | 1,999 |", id="a family"),
        pytest.param("| P | 4 of 4 | 100 % |  |  | 5 of 5 | 100 % |", id="a plugin that filters and has hints"),
        pytest.param("| Q |  |  | 1,998 of 1,999 | 99.9 % |  |  |", id="a plugin that scores"),
        pytest.param("| `scores` | 1,999 | 1,998 | 99.9 % |", id="a part"),
    ],
)
def test_the_report_has_rows_for_kinds_families_plugins_and_parts(want: str) -> None:
    assert want in report(TABLE).splitlines()


def test_only_the_generated_part_of_a_document_is_replaced() -> None:
    document = f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe end.\n"
    renewed = with_table(document, TABLE)
    assert renewed == f"# Title\n\n{BEGIN}\n\n{report(TABLE)}\n{END}\n\nThe end.\n"
    assert with_table(renewed, TABLE) == renewed


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(InputError, match="markers"):
        with_table(f"# Title\n{BEGIN}\n", TABLE)
