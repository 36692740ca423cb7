"""Skip a test because a program is missing; in continuous integration, fail the test instead."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from bayplan.base.build import UNCOMPILED_VARIABLE


def missing(reason: str) -> NoReturn:
    """Skip the calling test; fail it in continuous integration, where a browser and a compiler must be installed."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def nothing_compiled() -> NoReturn:
    """Skip the calling test, which needs compiled modules; fail it in continuous integration, unless disabled."""
    if os.environ.get(UNCOMPILED_VARIABLE):
        pytest.skip(f"{UNCOMPILED_VARIABLE} is set, so nothing is compiled")
    missing("nothing is compiled; make build does it, or says why it can't")
