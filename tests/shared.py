"""Paths of recorded answers: those of the repository, and larger data next to the checkout that not every machine has."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RECORDINGS = ROOT / "conformance"
"""The recordings that are part of the repository."""

SHARED = ROOT.parent / "shared"
"""Data that is not part of the repository: third-party files, files of upstream, and large recordings."""


def recording(*parts: str) -> Path:
    """Return the path of a recording of the repository."""
    return RECORDINGS.joinpath(*parts)


def shared_path(*parts: str) -> Path:
    """Return the path of a file or folder that is not part of the repository; skip the calling test if it is missing."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {path}, which is not part of the repository")
    return path
