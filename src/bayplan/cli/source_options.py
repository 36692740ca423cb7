"""Options of the commands that ask about a cluster: its source, and the scheduler."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from glob import has_magic
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer

from bayplan.analysis.grouped_problems import group_warnings
from bayplan.analysis.report import SHOWN_WARNINGS
from bayplan.app.mode import Mode
from bayplan.app.sources.cluster_source import ClusterSource, SourceOptions
from bayplan.app.sources.opening import open_source
from bayplan.base.errors import InputError
from bayplan.cli.option_groups import OptionGroup
from bayplan.cli.simulation_options import ModeOption, Plugins, Seed, SourceConfig, SourceFeatureGates, Strict
from bayplan.formats.manifest import LoadWarning

URLS = ("http://", "https://")

SOURCE_HELP = "Manifests or dump, result directory, or URL of a Bayplan server."

Sources: TypeAlias = Annotated[list[str] | None, typer.Argument(metavar="[SOURCE]...", help=SOURCE_HELP)]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


class LiveCluster(OptionGroup, frozen=True):
    """The live cluster to read, unless arguments name a source."""

    context: Annotated[
        str,
        typer.Option(
            "--context", metavar="NAME", help="Context of a live cluster to read instead of SOURCE. [default: none]"
        ),
    ] = ""
    kubeconfig: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Kubeconfig of the live cluster. [default: as for kubectl]")
    ] = None


class ChosenScheduler(OptionGroup, frozen=True):
    """The scheduler that decides, and whether to accept input with warnings."""

    mode: ModeOption = Mode.CURRENT
    config: SourceConfig = None
    feature_gates: SourceFeatureGates = ""
    plugin: Plugins = None
    seed: Seed = 0
    strict: Strict = False


def source_options(paths: list[str] | None, live: LiveCluster, scheduler: ChosenScheduler) -> SourceOptions:
    """Return the source options of a command."""
    return SourceOptions(
        paths=paths or (),
        context=live.context,
        kubeconfig=live.kubeconfig,
        mode=scheduler.mode,
        config=scheduler.config,
        feature_gates=scheduler.feature_gates,
        plugins=scheduler.plugin or (),
        seed=scheduler.seed,
        strict=scheduler.strict,
    )


def check_subject(name: str, text: str, options: SourceOptions) -> None:
    """Raise if a command got a source but nothing to ask about, or both in the wrong order: the source is the first argument.

    Args:
        name: the name of the first argument, e.g. ``POD``.
        text: the first argument.
        options: the options of the command.

    Raises:
        InputError: the first argument is a source.
    """
    if options.context or options.kubeconfig is not None:
        return
    if options.paths:
        other = options.paths[0]
        is_source = other == "-" or other.startswith(URLS) or has_magic(other) or Path(other).exists()
        if Path(text).is_file() and len(options.paths) == 1 and not is_source:
            raise InputError(name, got=f"the file {text}", wanted=f"{name}, then a source", hint=f"{other} {text}")
        return
    if text.startswith(URLS) or Path(text).exists():
        # A file or directory may have the name of the subject by chance.
        got = f"only {text}, which is a file, directory or URL"
        raise InputError(name, got=got, wanted=f"{name} and a source", hint=f"{name} {text}, or {text} SOURCE")


def read_source(options: SourceOptions) -> ClusterSource:
    """Open the source of a command; warnings about the input go to standard error.

    Raises:
        InputError: see `open_source`.
    """
    source = open_source(options, stdin=sys.stdin.buffer)
    print_warnings(source.warnings)
    return source


def print_warnings(warnings: Iterable[LoadWarning]) -> None:
    """Print warnings about the input on standard error, because a misspelt field may explain an answer."""
    found = [each for each in warnings if not each.kind.is_note]
    lines = group_warnings((each.where, each.what, each.problem, each.hint) for each in found).lines()
    for line in lines[:SHOWN_WARNINGS]:
        print(f"warning: {line}", file=sys.stderr)
    if len(lines) > SHOWN_WARNINGS:
        print(f"warning: and {len(lines) - SHOWN_WARNINGS:,} more", file=sys.stderr)


def print_json(value: object) -> None:
    """Print plain data, or typed rows, as indented JSON."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
