"""Extenders of a Policy: the nodes that they keep, their scores, and when a failure counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from bayplan.classic.assemble import assemble_classic_scheduler
from bayplan.classic.extender import ClassicExtender
from bayplan.engine.select_host import first_by_name
from bayplan.framework.configuration.document import Extender as ExtenderConfiguration
from bayplan.framework.extender import Send
from bayplan.framework.extender_answers import ExtenderFailure
from bayplan.testing.builders import make_pod
from tests.classic.cycles import Cycle, configured, cycle, node, only_priority

Answers = Mapping[str, Callable[[Mapping[str, object]], object]]


def _refuse(arguments: Mapping[str, object]) -> object:
    raise ExtenderFailure("refused")


def _cycle(answers: Answers, *, weight: int = 1, ignorable: bool = False) -> Cycle:
    def send(verb: str, arguments: Mapping[str, object]) -> object:
        return answers[verb](arguments)

    configuration = ExtenderConfiguration(
        url_prefix="http://x",
        filter_verb="filter" if "filter" in answers else "",
        prioritize_verb="rank" if "rank" in answers else "",
        weight=weight,
        node_cache_capable=True,
        ignorable=ignorable,
    )
    typed_send: Send = send
    scheduler = assemble_classic_scheduler(
        configured(policy=only_priority("EqualPriority")),
        pick=first_by_name,
        extenders=[ClassicExtender(configuration, typed_send)],
    )
    for name in ("n1", "n2", "n3"):
        scheduler.handle(None, node(name).obj(), 0)
    return cycle(scheduler, make_pod("p"))


def test_an_extender_filters_nodes() -> None:
    found = _cycle({"filter": lambda _: {"NodeNames": ["n2"], "FailedNodes": {"n1": "no", "n3": "no"}}})
    assert (found.feasible, found.chosen) == (["n2"], "n2")


def test_reasons_of_an_extender_are_counted_in_the_message() -> None:
    found = _cycle({"filter": lambda _: {"NodeNames": [], "FailedNodes": {"n1": "no", "n2": "no", "n3": "never"}}})
    assert found.message == "0/3 nodes are available: 1 never, 2 no."


@pytest.mark.parametrize("weight", [1, 3])
def test_extender_scores_are_weighted_without_scaling(weight: int) -> None:
    ranks = [{"Host": "n1", "Score": 2}, {"Host": "n2", "Score": 9}, {"Host": "n3", "Score": 0}]
    found = _cycle({"rank": lambda _: ranks}, weight=weight)
    # The policy's only priority gives 1 to every node.
    assert (found.chosen, found.result.common.total) == ("n2", 1 + 9 * weight)


@pytest.mark.parametrize(("ignorable", "chosen"), [(True, "n1"), (False, "")])
def test_an_extender_failure_ends_the_cycle_unless_ignorable(ignorable: bool, chosen: str) -> None:
    found = _cycle({"filter": _refuse}, ignorable=ignorable)
    assert found.chosen == chosen
    assert ("refused" in found.message) is not ignorable
