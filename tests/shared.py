"""The location of the recorded answers and the third-party data on machines that have them (continuous integration does)."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared_path(*parts: str) -> Path:
    """Return the path of a shared file or folder; skip the calling test, with the reason, if it is absent."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"needs {'/'.join(parts)} of the recorded data next to the checkout, which is not part of the repository"
        )
    return path
