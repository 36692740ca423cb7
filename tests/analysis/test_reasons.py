"""Reasons in messages of schedulers: parsed, shortened, counted."""

from __future__ import annotations

import pytest

from bayplan.analysis.reasons import Reason, ReasonCount, pods_by_reason, reasons_of, short_reasons

PREEMPTION = "preemption: 0/4 nodes are available: 4 No preemption victims found for incoming pod."


@pytest.mark.parametrize(
    ("message", "want"),
    [
        pytest.param("", (), id="no reason"),
        pytest.param(
            f"0/4 nodes are available: 1 Too many pods, 3 Insufficient memory, 4 Insufficient cpu. {PREEMPTION}",
            (Reason("Insufficient cpu", 4), Reason("Insufficient memory", 3), Reason("Too many pods", 1)),
            id="reasons are ordered by the number of nodes, without preemption's result",
        ),
        pytest.param(
            "0/4 nodes are available: 1 node(s) had untolerated taint {a: b, 2 c}, 3 node(s) were unschedulable.",
            (
                Reason("node(s) were unschedulable", 3),
                Reason("node(s) had untolerated taint {a: b", 1),
                Reason("c}", 2),
            ),
            id="a taint that looks like a counted reason is read as one, since the text is ambiguous",
        ),
        pytest.param(
            f'0/3 nodes are available: persistentvolumeclaim "nope" not found. {PREEMPTION}',
            (Reason('persistentvolumeclaim "nope" not found', 0),),
            id="a reason from PreFilter counts no nodes",
        ),
        pytest.param(
            "0/2 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.",
            (Reason("Insufficient cpu", 1),),
            id="preemption that was not eligible",
        ),
        pytest.param(
            f"0/4 nodes are available: 4 node(s) had untolerated taint(s). no new claims to deallocate, {PREEMPTION}",
            (Reason("node(s) had untolerated taint(s)", 4),),
            id="preemption's message about claims is omitted, too",
        ),
        pytest.param(
            "0/4 nodes are available: 1 node(s) had no example.com/gpu. or so, 3 x. no new claims to deallocate",
            (Reason("x", 3), Reason("node(s) had no example.com/gpu. or so", 1)),
            id="a full stop inside a reason",
        ),
        pytest.param(
            "Scheduling is blocked due to non-empty scheduling gates",
            (Reason("Scheduling is blocked due to non-empty scheduling gates", 0),),
            id="another message is a reason as a whole",
        ),
        pytest.param(
            f"0/4 nodes are available: {PREEMPTION}",
            (Reason(f"0/4 nodes are available: {PREEMPTION}", 0),),
            id="a message without reasons is kept whole",
        ),
    ],
)
def test_reasons_of_parses_a_scheduler_message(message: str, want: tuple[Reason, ...]) -> None:
    assert sorted(reasons_of(message)) == sorted(want)


def test_short_reasons_lists_the_two_most_frequent_reasons() -> None:
    message = "0/9 nodes are available: 1 Too many pods, 2 x, 3 Insufficient memory, 5 Insufficient cpu."
    assert short_reasons(message) == "Insufficient cpu (5), Insufficient memory (3), ..."
    assert short_reasons("no profile") == "no profile"
    assert short_reasons("") == ""


def test_a_pod_counts_for_each_of_its_reasons_and_once_for_its_main_reason() -> None:
    messages = [
        ("0/9 nodes are available: 8 Insufficient cpu, 1 node(s) were unschedulable.", 3),
        ("0/9 nodes are available: 5 Too many pods, 1 node(s) were unschedulable.", 2),
    ]
    assert pods_by_reason(messages) == [
        ReasonCount("Insufficient cpu", 3, 3),
        ReasonCount("Too many pods", 2, 2),
        ReasonCount("node(s) were unschedulable", 5, 0),
    ]
