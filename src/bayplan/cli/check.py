"""The command ``check``: check manifests without a cluster."""

import time
from typing import Annotated

import typer


def check(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Manifests, as files, folders, patterns or - (stdin).")
    ],
    onto: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="Dump or manifests of the cluster to check against; repeatable. [default: none]"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Check manifests as kubectl apply --dry-run=server does.

    Custom resource definitions, namespaces and admission policies among the manifests apply to the others. Nothing is stored, and
    no cluster is needed. Each refusal, warning and malformed document is printed with file and line.

    Exit code: 0 if all objects are accepted, 1 if one is refused, 2 on bad input, such as a malformed document.

    Example: bayplan check deploy/
    """
    # Imported here, because only this command needs an API.
    import msgspec

    from bayplan.app.manifest_check import check_manifests
    from bayplan.base.counted_nouns import format_count

    begun = time.monotonic()
    found = check_manifests(paths, onto or ())
    malformed = sum(bool(each.malformed) for each in found)
    refused = sum(bool(each.refused) for each in found)
    if json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        for each in found:
            for warning in each.warnings:
                print(f"{each}: warning: {warning}")
            if each.refused:
                print(f"{each}: refused: {each.refused}")
            if each.malformed:
                print(f"{each}: malformed: {each.malformed}")
        objects = len(found) - malformed
        warned = sum(bool(each.warnings) for each in found)
        counts = f"{objects - refused:,} accepted, {refused:,} refused, {warned:,} with warnings"
        unread = f"; {format_count(malformed, 'malformed document')}" if malformed else ""
        print(f"{objects:,} objects: {counts}{unread} ({time.monotonic() - begun:.1f} s)")
    if malformed or refused:
        raise typer.Exit(2 if malformed else 1)
