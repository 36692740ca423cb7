"""The text of a failure: the number of nodes for each reason, as in upstream's FitError."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from bayplan.framework.diagnosis import Diagnosis, format_reasons
from bayplan.framework.status import ERROR_BIT, UNRESOLVABLE_BIT, Code, Status, error, unresolvable, verdict_code

TEXTS = {
    1: ("Insufficient cpu",),
    2: ("Too many pods",),
    3: ("Insufficient cpu", "Insufficient memory"),
    4: ("had taint",),
}


def explain(value: int) -> Status:
    number, verdict = value >> 16, value & 0xFFFF
    return Status(verdict_code(verdict), TEXTS[verdict & 0xFF], ("Taints", "Fit")[number])


def make(
    verdicts: Sequence[tuple[int, int] | None],
    *,
    nodes: int | None = None,
    absent: Status | None = None,
    pre_filter: Status | None = None,
    overrides: dict[int, Status] | None = None,
    post_filter: str = "",
) -> Diagnosis:
    """Return a diagnosis of rows with (filter, verdict); None: PreFilter left that node out."""
    values = [-1 if it is None else it[0] << 16 | it[1] for it in verdicts]
    return Diagnosis(
        num_all_nodes=len(verdicts) if nodes is None else nodes,
        pre_filter_status=pre_filter,
        examined=np.array([verdict is not None for verdict in verdicts], dtype=np.bool_),
        values=np.array(values, dtype=np.int64),
        filters=("Taints", "Fit"),
        explain=explain,
        counts=Counter(value for value in values if value >= 0),
        absent_status=absent,
        overrides=overrides or {},
        post_filter_message=post_filter,
    )


CPU, PODS, TWO, TAINT = (1, 1), (1, 2), (1, 3), (0, 4 | UNRESOLVABLE_BIT)
NARROWED = unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]")


@pytest.mark.parametrize(
    ("diagnosis", "want"),
    [
        pytest.param(make([CPU]), "0/1 nodes are available: 1 Insufficient cpu.", id="one node"),
        pytest.param(
            make([CPU, TAINT, CPU]),
            "0/3 nodes are available: 1 had taint, 2 Insufficient cpu.",
            id="equal reasons are counted",
        ),
        pytest.param(
            make([TWO, CPU]),
            "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu.",
            id="each reason of a node counts by itself",
        ),
        pytest.param(
            make([CPU] * 10 + [PODS] * 9),
            "0/19 nodes are available: 10 Insufficient cpu, 9 Too many pods.",
            id="sorted as texts, so that 10 comes before 9",
        ),
        pytest.param(
            make([CPU, None, None], absent=NARROWED),
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].",
            id="nodes that PreFilter excluded have its reason",
        ),
        pytest.param(
            make([CPU, None], absent=NARROWED, overrides={1: Status(Code.UNSCHEDULABLE, ("by an extender",))}),
            "0/2 nodes are available: 1 Insufficient cpu, 1 by an extender.",
            id="a status of its own is reported instead",
        ),
        pytest.param(
            make([CPU, TAINT], overrides={0: Status(Code.UNSCHEDULABLE, ("by an extender",))}),
            "0/2 nodes are available: 1 by an extender, 1 had taint.",
            id="also if a filter had reported something",
        ),
        pytest.param(
            make([CPU, CPU], pre_filter=unresolvable("a claim is missing", "so is another")),
            "0/2 nodes are available: a claim is missing, so is another.",
            id="a rejection by PreFilter is reported without numbers",
        ),
        pytest.param(
            make([CPU], pre_filter=unresolvable()), "0/1 nodes are available:", id="a rejection without words"
        ),
        pytest.param(
            make([CPU], post_filter="preemption: 0/1 nodes are available: 1 No victims."),
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No victims.",
            id="the result of PostFilter is last",
        ),
        pytest.param(
            make([CPU], pre_filter=unresolvable("no"), post_filter="not found"),
            "0/1 nodes are available: no. not found",
            id="also after a rejection by PreFilter",
        ),
    ],
)
def test_message_counts_nodes_by_reason(diagnosis: Diagnosis, want: str) -> None:
    assert diagnosis.message() == want


def test_format_reasons_is_empty_without_reasons_and_sorts_them() -> None:
    assert format_reasons({}) == ""
    assert format_reasons({"b": 1, "a": 1}) == " 1 a, 1 b."


def test_status_of_returns_the_status_of_a_node() -> None:
    diagnosis = make([CPU, TAINT, None, (-1, 0)], absent=NARROWED, overrides={0: error("e")})
    assert [diagnosis.status_of(row) for row in range(4)] == [
        error("e"),
        explain(TAINT[0] << 16 | TAINT[1]),
        NARROWED,
        None,
    ]
    rejected = make([CPU], pre_filter=unresolvable("no"))
    assert rejected.status_of(0) == unresolvable("no")


@pytest.mark.parametrize(
    ("code", "want"),
    [
        pytest.param(Code.UNSCHEDULABLE, [True, False, False, False, False], id="unschedulable"),
        pytest.param(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [False, True, True, False, False], id="nothing helps"),
        pytest.param(Code.ERROR, [False, False, False, True, True], id="error"),
        pytest.param(Code.SUCCESS, [False] * 5, id="filters return no other code"),
    ],
)
def test_rows_with_selects_rows_by_code(code: Code, want: list[bool]) -> None:
    diagnosis = make([CPU, TAINT, None, (0, ERROR_BIT | 4), PODS], absent=NARROWED, overrides={4: error("e")})
    assert rows_with(diagnosis, code) == want


def test_rows_with_covers_all_nodes_after_a_pre_filter_rejection() -> None:
    diagnosis = make([CPU, CPU], pre_filter=unresolvable("no"))
    assert rows_with(diagnosis, Code.UNSCHEDULABLE_AND_UNRESOLVABLE) == [True, True]
    assert rows_with(diagnosis, Code.UNSCHEDULABLE) == [False, False]


@pytest.mark.parametrize(
    ("diagnosis", "want"),
    [
        pytest.param(make([CPU, PODS]), None, id="all nodes"),
        pytest.param(
            make([CPU, PODS], overrides={1: error("e")}), [True, False], id="an extender rejected one of them"
        ),
        pytest.param(make([CPU, None], absent=NARROWED), [True, False], id="PreFilter excluded one"),
        pytest.param(make([CPU, TAINT]), [True, False], id="nothing helps on one"),
    ],
)
def test_rows_with_returns_none_if_all_nodes_have_the_code(diagnosis: Diagnosis, want: list[bool] | None) -> None:
    assert rows_with(diagnosis, Code.UNSCHEDULABLE) == want


def rows_with(diagnosis: Diagnosis, code: Code) -> list[bool] | None:
    rows = diagnosis.rows_with(code)
    return None if rows is None else rows.tolist()
