"""Conditions: which one a new condition replaces, and the time of its last transition."""

from __future__ import annotations

import pytest

from bayplan.apiserver.kinds.conditions import with_condition
from tests.apiserver.client import Document


def condition(name: str, status: str, time: str, reason: str = "R") -> Document:
    return {"type": name, "status": status, "lastTransitionTime": time, "reason": reason}


OLD = [condition("A", "True", "1"), condition("B", "True", "1")]


@pytest.mark.parametrize(
    ("conditions", "new", "want"),
    [
        pytest.param(None, condition("A", "True", "2"), [condition("A", "True", "2")], id="the first condition"),
        pytest.param(OLD, condition("C", "True", "2"), [*OLD, condition("C", "True", "2")], id="another type"),
        pytest.param(
            OLD, condition("A", "False", "2"), [condition("A", "False", "2"), OLD[1]], id="another status, another time"
        ),
        pytest.param(
            OLD, condition("A", "True", "2", "S"), [condition("A", "True", "1", "S"), OLD[1]],
            id="the same status keeps the time",
        ),
    ],
)  # fmt: skip
def test_a_condition_replaces_the_one_of_its_type(
    conditions: list[Document] | None, new: Document, want: list[Document]
) -> None:
    given = dict(new)
    assert with_condition({"x": 1, "conditions": conditions}, new) == {"x": 1, "conditions": want}
    assert new == given
