"""Options of the commands about capacity, nodes and what-if, and the output of their results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, TypeAlias

import msgspec
import typer

from bayplan.analysis.rows import Rows
from bayplan.analysis.text_layout import bulleted
from bayplan.answers.answer_text import assumed
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.app.custom_plugins import reported_plugin_errors
from bayplan.app.question_clusters import question_cluster
from bayplan.app.sources.cluster_source import ClusterSource, SourceOptions
from bayplan.cli.source_options import read_source

All: TypeAlias = Annotated[bool, typer.Option("--all", help="Show all rows instead of the first 15.")]


@contextmanager
def opened(options: SourceOptions) -> Iterator[tuple[ClusterSource, QuestionCluster]]:
    """Open the source of a command, and close its connections at the end of the block.

    Raises:
        InputError: the source cannot be read.
    """
    source = read_source(options)
    try:
        with reported_plugin_errors(source.scheduler.custom_plugins):
            yield source, question_cluster(source, seed=options.seed)
    finally:
        source.close()


def print_answer(
    answer: msgspec.Struct, source: ClusterSource, text: Callable[[], list[str]], *, as_json: bool
) -> None:
    """Print an answer with the assumptions of its source, as JSON or as text."""
    assumptions = [each.text for each in source.assumptions]
    if as_json:
        found = answer_document(answer)
        found["source"] = {"name": source.name, "kind": source.kind.value, "assumptions": assumptions}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    else:
        # The text ends with the answer's own assumptions, if it has any.
        own = getattr(answer, "assumptions", ())
        print_lines([*text(), *(bulleted(assumptions) if own else assumed(assumptions))])


def answer_document(answer: msgspec.Struct) -> dict[str, object]:
    """Return an answer as plain data that JSON can encode."""

    def plain(item: object) -> object:
        if isinstance(item, Rows):
            return item.to_dicts()
        raise TypeError(f"no plain form of {type(item).__name__}")

    found: dict[str, object] = msgspec.to_builtins(answer, enc_hook=plain)
    return found


def print_lines(lines: Iterable[str]) -> None:
    """Print lines on standard output."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
