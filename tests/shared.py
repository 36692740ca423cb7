"""The recorded answers and third-party data on machines that have them, such as those of continuous integration."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared_path(*parts: str) -> Path:
    """Return the path of a shared file or folder; skip the calling test if it does not exist."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(
            f"needs {'/'.join(parts)} of the recorded data next to the checkout, which is not part of the repository"
        )
    return path
