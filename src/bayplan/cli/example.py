"""The command ``example``: print the path of the bundled example, or copy it."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from bayplan.base.errors import InputError
from bayplan.examples import example_path


def example(
    name: Annotated[str, typer.Argument(help="Name of the example.")] = "three-zones",
    copy: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="New folder to copy the example to. [default: none]")
    ] = None,
) -> None:
    """Print the path of the bundled example, or copy it.

    The example is a cluster with three zones, two node pools and a GPU pool, a web application, an agent on every node, batch
    and training jobs, and two workloads that can't fit.

    Example: bayplan simulate $(bayplan example)
    """
    path = example_path(name)
    if copy is not None:
        if copy.exists():
            raise InputError("--copy", got=f"'{copy}', which already exists", wanted="a new folder")
        shutil.copytree(path, copy)
        path = copy
    print(path)
