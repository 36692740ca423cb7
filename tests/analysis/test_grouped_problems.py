"""Repeated problems are reported in one line, with their number and their first places."""

import pytest

from bayplan.analysis.grouped_problems import group_messages, group_warnings


@pytest.mark.parametrize(
    ("warnings", "want"),
    [
        pytest.param([], [], id="none"),
        pytest.param(
            [("a.yaml:3", "Pod web $.spec.nodSelector", "unknown field", "'nodeSelector'")],
            ["a.yaml:3 Pod web $.spec.nodSelector: unknown field; try 'nodeSelector'"],
            id="a single problem is printed with its object",
        ),
        pytest.param(
            [(f"a.yaml:{n}", f"Pod web-{n} $.spec.containers[{n}].imag", "unknown field", "'image'") for n in range(5)],
            [
                "Pod $.spec.containers[].imag: unknown field; try 'image' "
                "(5 times: a.yaml:0, a.yaml:1, a.yaml:2 and 2 more)"
            ],
            id="the same field of several objects",
        ),
        pytest.param(
            [("a:1", "Pod web $.spec.x", "unknown field", ""), ("a:2", "Pod web $.spec.y", "unknown field", "")],
            ["a:1 Pod web $.spec.x: unknown field", "a:2 Pod web $.spec.y: unknown field"],
            id="different fields are different problems",
        ),
    ],
)
def test_repeated_warnings_are_grouped_with_count_and_first_places(
    warnings: list[tuple[str, str, str, str]], want: list[str]
) -> None:
    assert group_warnings(warnings).lines() == want


@pytest.mark.parametrize(
    ("messages", "want"),
    [
        pytest.param(
            [(f"pods default/p{n}", f"p{n}", f'pods "p{n}" is forbidden: no PriorityClass high') for n in range(4)],
            [
                'pods "p0" is forbidden: no PriorityClass high '
                "(4 times: pods default/p0, pods default/p1, pods default/p2 and 1 more)"
            ],
            id="messages that differ in the name of the object",
        ),
        pytest.param(
            [("nodes a", "a", "too large"), ("pods d/b", "b", "forbidden")],
            ["nodes a: too large", "pods d/b: forbidden"],
            id="different messages",
        ),
    ],
)
def test_repeated_messages_are_grouped_with_count_and_first_pods(
    messages: list[tuple[str, str, str]], want: list[str]
) -> None:
    assert group_messages(messages).lines() == want
