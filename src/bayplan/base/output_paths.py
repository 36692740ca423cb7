"""Checks of output files and folders before the work starts, so that no result is lost."""

import os
import tempfile
from pathlib import Path

from bayplan.base.errors import InputError


def check_output_folder(folder: Path, option: str) -> None:
    """Check that files can be created in a folder.

    Args:
        folder: the output folder.
        option: the command-line option that names it, for the error.

    Raises:
        InputError: the folder does not exist, or files cannot be created in it.
    """
    wanted = "a path in a writable folder"
    if not folder.is_dir():
        raise InputError(option, got=f"'{folder}', which does not exist", wanted=wanted, hint=f"mkdir -p {folder}")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise InputError(option, got=f"'{folder}' ({reason})", wanted=wanted) from None


def check_output_file(path: Path, option: str) -> None:
    """Check that a file can be created or overwritten; arguments and errors as for `check_output_folder`."""
    if path.is_dir():
        raise InputError(option, got=f"'{path}', a folder", wanted="a file")
    if not path.exists():
        check_output_folder(path.parent, option)
    elif not os.access(path, os.W_OK):
        raise InputError(option, got=f"'{path}', a read-only file", wanted="a writable file")
