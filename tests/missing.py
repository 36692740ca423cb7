"""Skip a test because a program or a permission is missing; in GitHub's workflows, fail the test instead."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

from bayplan.base.build import UNCOMPILED_VARIABLE


def missing(reason: str) -> NoReturn:
    """Skip the calling test; fail it in GitHub's workflows, which install everything.

    Args:
        reason: what is missing and how to get it.
    """
    if os.environ.get("GITHUB_ACTIONS"):
        pytest.fail(reason)
    pytest.skip(reason)


def installed(program: str) -> str:
    """Return the path of a program that is in the Debian package of the same name; if there is none, see `missing`."""
    path = shutil.which(program)
    if path is None:
        missing(f"needs {program} (on Debian: apt-get install {program})")
    return path


def nothing_compiled() -> NoReturn:
    """Skip the calling test, which needs compiled modules; fail it in GitHub's workflows, unless disabled."""
    if os.environ.get(UNCOMPILED_VARIABLE):
        pytest.skip(f"{UNCOMPILED_VARIABLE} is set, so nothing is compiled")
    missing("nothing is compiled; make build does it, or says why it can't")
