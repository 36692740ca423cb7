"""A decision as an HTML table, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.base.html_table import table

if TYPE_CHECKING:
    from bayplan.engine.decision import Decision


def decision_html(decision: Decision) -> str:
    """Return a decision as its matrix: a row for each node, with the rejection or the weighted score of every plugin."""
    record = decision.record
    outcome = f"{record.pod} → {record.node}" if record.node else f"{record.pod} waits: {record.message}"
    weighted, rows = decision.weighted, []
    # The chosen node and the best ones come first, then those that were rejected.
    order = sorted(range(len(decision.names)), key=lambda row: (-int(decision.total[row]), row))
    for row in order:
        status = decision.first_failure(row)
        name = decision.names[row]
        if decision.feasible[row]:
            scores = [f"{int(weighted[number, row]):,}" for number in range(len(decision.scorers))]
            mark = "chosen" if name == record.node else "tied" if name in decision.ties else ""
            rows.append((name, mark, f"{int(decision.total[row]):,}", *scores))
        else:
            reason = f"{status.plugin}: {status.message}" if status is not None else "not examined"
            rows.append((name, reason.removeprefix(": "), "", *("" for _ in decision.scorers)))
    return table(("node", "", "total", *decision.scorers), rows, caption=outcome)
