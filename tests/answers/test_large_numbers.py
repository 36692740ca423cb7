"""Numbers of any length in questions are read or refused; Python refuses to convert more than 4,300 digits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.answers.capacity import parse_mix
from bayplan.answers.changes import parse_change
from bayplan.answers.node_shapes import parse_shape
from bayplan.answers.what_if import what_if
from bayplan.app.custom_plugins import load_custom_plugins
from bayplan.app.question_clusters import changed_setup
from bayplan.app.scheduler_setup import read_setup
from bayplan.base.errors import InputError
from bayplan.plugins.registry import in_tree_registry
from tests.answers.clusters import cluster_of, node

DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda: parse_shape(f"cpu=1,memory=1Gi,most={DIGITS}"), id="nodes of a shape"),
        pytest.param(lambda: parse_mix(f"web={DIGITS}"), id="copies"),
        pytest.param(
            lambda: what_if(cluster_of(node("n")), [parse_change(f"add-nodes={DIGITS}:like=n")]), id="new nodes"
        ),
        pytest.param(lambda: changed_setup(read_setup(), [f"weight=NodeResourcesFit:{DIGITS}"]), id="a changed weight"),
        pytest.param(
            lambda: load_custom_plugins([f"my.py:Mine={DIGITS}"], in_tree_registry()), id="the weight of a plugin"
        ),
    ],
)
def test_too_many_digits_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InputError, match="expected"):
        call()


def test_a_limit_of_nodes_may_have_a_decimal_point() -> None:
    assert parse_shape("cpu=1,memory=1Gi,most=3.0").most == 3
