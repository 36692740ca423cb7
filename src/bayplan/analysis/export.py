"""Write a result directory: all decisions of a run as Parquet and JSON. `result_layout` describes the files.

Wall-clock times are not written, so that the files of two runs can be compared; the report on the terminal shows them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import msgspec

from bayplan.analysis.run_facts import RunFacts, run_facts
from bayplan.base.errors import InputError
from bayplan.base.extras import named_extras
from bayplan.base.output_paths import check_output_folder
from bayplan.sim.result import SimulationResult

SUMMARY = "summary.json"


def export(result: SimulationResult, directory: Path, *, facts: RunFacts | None = None) -> None:
    """Write a result directory, replacing an existing one.

    Everything is written into a temporary directory next to it, which is renamed at the end, so a directory with the final name
    is always complete. `facts`: the facts of the result, if already computed.

    Raises:
        InputError: see `check_destination`.
    """
    # PyArrow takes a while to import, and most runs write nothing.
    with named_extras():
        from bayplan.analysis.result_writer import write_result

    check_destination(directory)
    directory = directory.resolve()
    partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", suffix=".partial", dir=directory.parent))
    try:
        write_result(result, partial, facts or run_facts(result))
        # Temporary directories are private to the user; a result gets the usual permissions.
        partial.chmod(0o777 & ~_umask())
        _replace(partial, directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_destination(directory: Path) -> None:
    """Check that a result can be written to a directory; called before the run, so that its result is not lost.

    Raises:
        InputError: the directory contains anything but a result, is a file, or can't be created.
        MissingExtra: PyArrow, which writes the tables, is not installed.
    """
    with named_extras():
        import pyarrow  # noqa: F401
    wanted = "a new folder or an older result"
    if directory.exists():
        if not directory.is_dir():
            raise InputError("--out", got=f"'{directory}', a file", wanted=wanted)
        if any(directory.iterdir()) and not is_result(directory):
            got = f"'{directory}', a folder with other files"
            raise InputError("--out", got=got, wanted=wanted, hint="another name")
    # The result is written under a temporary name in the parent folder, and then renamed.
    check_output_folder(directory.resolve().parent if directory.exists() else directory.parent, "--out")


def is_result(directory: Path) -> bool:
    """Return whether a directory was written by `export`, in any version."""
    try:
        text = (directory / SUMMARY).read_bytes()
        summary = msgspec.json.decode(text)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(summary, dict) and isinstance(summary.get("format"), int) and "digest" in summary


def _replace(new: Path, directory: Path) -> None:
    """Rename a directory to its final name, deleting any existing directory of that name."""
    if not directory.exists():
        new.rename(directory)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", suffix=".old", dir=directory.parent))
    try:
        directory.rename(old / directory.name)
        try:
            new.rename(directory)
        except OSError:
            (old / directory.name).rename(directory)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
