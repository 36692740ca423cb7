"""The verb ``example``: where the bundled example lies, so that it can be simulated, read or copied."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from bayplan.base.errors import InputError
from bayplan.examples import example_path


def example(
    name: Annotated[str, typer.Argument(help="Which one.")] = "three-zones",
    copy: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Copy it here; the folder must not exist.")
    ] = None,
) -> None:
    """Print where the bundled example lies, or copy it.

    Three zones, two node pools and a GPU pool; a web application, an agent on every node, batch and training jobs, and
    two workloads that can't fit: bayplan simulate $(bayplan example)
    """
    path = example_path(name)
    if copy is not None:
        if copy.exists():
            raise InputError("folder exists", where=str(copy), wanted="a folder that is not there yet")
        shutil.copytree(path, copy)
        path = copy
    print(path)
