"""Decisions as Arrow tables."""

from __future__ import annotations

from bayplan.analysis.decision_tables import decision_table, records_table
from bayplan.engine.decision import Outcome
from bayplan.engine.records import RecordLevel
from tests.analysis.runs import busy_run, node, pod, run


def test_a_decision_table_has_a_row_per_node_and_columns_per_plugin() -> None:
    nodes = [node("n0").obj(), node("n1").taint("slow", effect="PreferNoSchedule").obj(), node("n2", cpu="1").obj()]
    result = run(*nodes, pod("p", cpu="2").obj())
    decision = result.records.decision(0)
    rows = decision_table(decision).to_pylist()
    first, second, third = rows
    assert [row["node"] for row in rows] == ["n0", "n1", "n2"]
    assert (first["feasible"], first["chosen"], first["tied"], first["plugin"]) == (True, True, True, None)
    assert first["total"] == result.records[0].total
    assert (second["raw.TaintToleration"], second["normalized.TaintToleration"]) == (1, 0)
    assert first["weighted.TaintToleration"] == 300
    assert second["filter.NodeResourcesFit"] is True
    assert (third["feasible"], third["plugin"], third["reason"]) == (False, "NodeResourcesFit", "Insufficient cpu")
    assert (third["filter.NodeResourcesFit"], third["total"], third["raw.TaintToleration"]) == (False, None, None)


def test_weighted_scores_add_up_to_the_total() -> None:
    result = busy_run()
    for number, record in enumerate(result.records):
        if record.frame < 0:
            continue
        table = decision_table(result.records.decision(number))
        assert table.num_rows in (9, 10)
        for row in table.to_pylist():
            if row["total"] is not None:
                assert row["total"] == sum(row[name] for name in row if name.startswith("weighted."))


def test_summary_records_convert_to_a_table() -> None:
    result = busy_run(RecordLevel.SUMMARY)
    table = records_table(result.records)
    assert table.num_rows == len(result.records)
    assert set(table.column("outcome").to_pylist()) == {"scheduled", "unschedulable"}
    assert table.column("frame").null_count == table.num_rows
    scheduled = [record for record in result.records if record.outcome is Outcome.SCHEDULED]
    assert records_table(scheduled).column("node").to_pylist() == [record.node for record in scheduled]
