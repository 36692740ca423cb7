"""Selection of nodes by name, pattern (``pool-a-*``) or label (``label:disk=ssd``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from bayplan.answers.question_cluster import QuestionCluster
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.objects.node import Node


def matching_nodes(text: str, nodes: Sequence[Node]) -> list[Node]:
    """Return those of the given nodes that a text selects: a name, a pattern, ``label:key=value`` or ``label:key`` (any value).

    Raises:
        InputError: no node matches.
    """
    if text.startswith("label:"):
        key, equals, value = text.removeprefix("label:").partition("=")
        found = [node for node in nodes if key in node.metadata.labels]
        found = [node for node in found if not equals or node.metadata.labels[key] == value]
    else:
        found = [node for node in nodes if fnmatchcase(node.metadata.name, text)]
    if not found:
        close = _near_selection(text, nodes)
        raise InputError(
            "nodes",
            got=repr(text),
            wanted="the name of a node, or a pattern (pool-a-*) or label (label:KEY=VALUE) that matches a node",
            hint=f"'{close}'" if close else "",
        )
    return found


def _near_selection(text: str, nodes: Sequence[Node]) -> str:
    """Return the name of a node, or the label, that a text was probably meant to select; "" if none is similar."""
    if not text.startswith("label:"):
        return near_name(text, [node.metadata.name for node in nodes])
    return near_label(text, [node.metadata.labels for node in nodes])


def near_label(text: str, labels: Iterable[Mapping[str, str]]) -> str:
    """Return the existing label that a text such as ``label:KEY=VALUE`` resembles, in the same form; "" if there is none."""
    key, equals, value = text.removeprefix("label:").partition("=")
    known: dict[str, dict[str, None]] = {}
    for each in labels:
        for name, content in each.items():
            known.setdefault(name, {})[content] = None
    key = key if key in known else near_name(key, known)
    values = known.get(key, {})
    value = value if value in values else near_name(value, values)
    return f"label:{key}{equals}{value}" if key and (value or not equals) else ""


def select_names(text: str, cluster: QuestionCluster) -> list[str]:
    """Return the names of a cluster's nodes that a text selects; see `matching_nodes`.

    Raises:
        InputError: no node matches.
    """
    return [node.metadata.name for node in matching_nodes(text, cluster.all(Node))]
