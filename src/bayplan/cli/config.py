"""The command ``config``: check a scheduler configuration, or convert one of an older release."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import yaml

from bayplan.app.custom_plugins import load_custom_plugins
from bayplan.base.counted_nouns import format_count
from bayplan.base.near_names import near_name
from bayplan.cli.simulation_options import FeatureGates, Plugins
from bayplan.extender.tls_check import check_extender_tls
from bayplan.formats.bounded_reading import MAX_CONFIGURATION_BYTES, read_bounded, read_configuration_bytes
from bayplan.formats.json_tree import JsonValue
from bayplan.framework import feature_gates as gates
from bayplan.framework.configuration.convert import convert_text
from bayplan.framework.configuration.extension_points import IN_TREE_EXTENSION_POINTS
from bayplan.framework.configuration.loading import Examination, examine_configuration
from bayplan.framework.configuration.problems import ConfigurationProblem, is_older, list_problems
from bayplan.framework.registry import Registry
from bayplan.plugins.registry import in_tree_registry

WIDTH = 110


class Action(StrEnum):
    """The actions of the command on a configuration."""

    CHECK = "check"
    CONVERT = "convert"


def config(
    action: Annotated[
        Action, typer.Argument(help="Print problems and effective configuration, or convert to v1.", show_default=False)
    ],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Configuration (YAML or JSON), or - for standard input.")],
    feature_gates: FeatureGates = "",
    plugin: Plugins = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check a scheduler configuration, or convert an older one.

    check reads a configuration as kube-scheduler does. It prints all problems, each with line, column, path and
    kube-scheduler's message, or the effective configuration with all defaults.

    convert reads KubeSchedulerConfiguration v1alpha1 to v1beta3, a Policy, or a ConfigMap with one of these, and prints it as
    v1. Comments list what was changed or left out.

    Exit code: 0 if the configuration, or the converted one, is valid; 1 if it is refused; 2 on bad input.

    Example: bayplan config check scheduler.yaml
    """
    text, where = _read(file)
    chosen = gates.FeatureGates.from_text(feature_gates, where="--feature-gates")
    registry, _ = load_custom_plugins(plugin or (), in_tree_registry())
    act = _check if action is Action.CHECK else _convert
    if not act(text, where, chosen, registry, as_json):
        raise typer.Exit(1)


def _read(file: str) -> tuple[str, str]:
    if file == "-":
        data = read_bounded(sys.stdin.buffer, "standard input", MAX_CONFIGURATION_BYTES)
        return data.decode("utf-8", "replace"), "standard input"
    return read_configuration_bytes(Path(file)).decode("utf-8", "replace"), file


def _examine(text: str, chosen: gates.FeatureGates, registry: Registry) -> Examination:
    return examine_configuration(
        text,
        feature_gates=chosen,
        extension_points_of=registry.extension_points_for_configuration,
        check_tls=check_extender_tls,
    )


def _check(text: str, where: str, chosen: gates.FeatureGates, registry: Registry, as_json: bool) -> bool:
    found = _examine(text, chosen, registry)
    problems = _problems(text, found, chosen, registry)
    effective = found.configuration.effective_document() if found.configuration is not None else None
    notes = _notes(found, registry)
    if as_json:
        plain: list[JsonValue] = [*notes]
        _print_json({"stage": found.stage, "problems": _plain(problems), "notes": plain, "configuration": effective})
        return found.stage is None
    for problem in problems:
        print(problem.line(where))
    if effective is not None:
        print(_yaml(effective), end="", flush=True)
        for note in notes:
            print(f"note: {note}", file=sys.stderr)
        return True
    hint = "; try bayplan config convert" if is_older(text, found) else ""
    print(f"refused at {found.stage}: {format_count(len(problems), 'problem')}{hint}", file=sys.stderr)
    return False


def _notes(found: Examination, registry: Registry) -> list[str]:
    """Return sentences about arguments of unknown plugins, which kube-scheduler ignores."""
    profiles = found.configuration.declared.profiles if found.configuration is not None else ()
    known = [*IN_TREE_EXTENSION_POINTS, *registry]
    notes = []
    for profile in profiles:
        for name in (entry.name for entry in profile.plugin_config if entry.name not in known):
            near = near_name(name, known)
            hint = f"; try {near}" if near else ""
            notes.append(
                f"{profile.scheduler_name}: there is no plugin {name}, so its pluginConfig has no effect{hint}"
            )
    return notes


def _problems(
    text: str, found: Examination, chosen: gates.FeatureGates, registry: Registry
) -> list[ConfigurationProblem]:
    names = [*IN_TREE_EXTENSION_POINTS, *registry]
    return list_problems(text, found, lambda corrected: _examine(corrected, chosen, registry), names)


def _convert(text: str, where: str, chosen: gates.FeatureGates, registry: Registry, as_json: bool) -> bool:
    conversion = convert_text(text, where=where)
    converted = _yaml(conversion.document)
    found = _examine(converted, chosen, registry)
    problems = _problems(converted, found, chosen, registry)
    if as_json:
        notes: list[JsonValue] = [{"path": path, "note": note} for path, note in conversion.notes]
        document = dict(conversion.document)
        _print_json(
            {"source": conversion.source, "notes": notes, "problems": _plain(problems), "configuration": document}
        )
        return found.stage is None
    print(f"# Converted from {conversion.source}.")
    for path, note in conversion.notes:
        print(f"# {path}: {note}")
    print(converted, end="")
    for problem in problems:
        print(problem.line("converted"), file=sys.stderr)
    return found.stage is None


def _plain(problems: list[ConfigurationProblem]) -> list[JsonValue]:
    return [
        {
            "line": each.place.line,
            "column": each.place.column,
            "path": each.place.path,
            "message": each.message,
            "hint": each.hint,
        }
        for each in problems
    ]


def _yaml(document: dict[str, JsonValue]) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False, width=WIDTH)
    return text


def _print_json(answer: dict[str, JsonValue]) -> None:
    print(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())
