"""Input files, pipes and compressed files that are too large or endless are refused."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats.bounded_reading import (
    DEFAULT_MAX_FILE_BYTES,
    MAX_CONFIGURATION_BYTES,
    MAX_FILE_VARIABLE,
    max_file_bytes,
    read_bounded,
    read_configuration_bytes,
)
from bayplan.formats.files import InputFile, read_bytes

ZERO = Path("/dev/zero")
SIZE = 2**21


class Endless(io.RawIOBase):
    """A stream that never ends, and counts what was read of it."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "never all at once"
        self.read_bytes += size
        return b"x" * size


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_FILE_VARIABLE, "2Mi")


@pytest.mark.parametrize(
    ("size", "fits"),
    [
        pytest.param(0, True, id="an empty file"),
        pytest.param(SIZE, True, id="as large as allowed"),
        pytest.param(SIZE + 1, False, id="one byte more"),
    ],
)
@pytest.mark.parametrize("packed", [pytest.param(False, id="plain"), pytest.param(True, id="packed")])
def test_input_files_have_a_maximum_size(size: int, fits: bool, packed: bool, tmp_path: Path) -> None:
    path, content = tmp_path / "pods.yaml", b"x" * size
    path.write_bytes(gzip.compress(content) if packed else content)
    if fits:
        assert read_bytes(InputFile(str(path), path)) == content
        return
    with pytest.raises(InputError) as refused:
        read_bytes(InputFile("pods.yaml", path))
    wanted = (
        "pods.yaml: expected a file of at most 2 MiB, got a larger one; try BAYPLAN_MAX_FILE=4Gi in the environment"
    )
    assert str(refused.value) == wanted


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(InputError, match=r"^/dev/zero: expected a file of at most 2 MiB, got a larger one"):
        read_bytes(InputFile("/dev/zero", ZERO))


def test_an_endless_pipe_is_read_only_up_to_the_limit() -> None:
    pipe = Endless()
    with pytest.raises(InputError, match=r"^<stdin>: expected a file of at most 2 MiB, got a larger one"):
        read_bytes(InputFile("<stdin>", None), stdin=pipe)  # type: ignore[arg-type]
    assert pipe.read_bytes == SIZE + 1


def test_an_endless_configuration_is_refused() -> None:
    with pytest.raises(InputError, match=r"^/dev/zero: expected a file of at most 16 MiB, got a larger one"):
        read_configuration_bytes(ZERO)


def test_short_reads_of_a_pipe_are_joined() -> None:
    class Drops(Endless):
        def read(self, size: int = -1) -> bytes:
            return b"abc"[self.read_bytes - 1 : self.read_bytes] if super().read(1) and self.read_bytes <= 3 else b""

    assert read_bounded(Drops(), "pipe", MAX_CONFIGURATION_BYTES) == b"abc"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(None, DEFAULT_MAX_FILE_BYTES, id="not set"),
        pytest.param("4Gi", 4 * 2**30, id="a quantity"),
        pytest.param("1000", 1000, id="a number"),
    ],
)
def test_the_maximum_size_is_read_from_the_environment(
    text: str | None, want: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MAX_FILE_VARIABLE)
    if text is not None:
        monkeypatch.setenv(MAX_FILE_VARIABLE, text)
    assert max_file_bytes() == want


@pytest.mark.parametrize("text", ["", "much", "0", "-1Gi"])
def test_an_invalid_maximum_size_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MAX_FILE_VARIABLE, text)
    with pytest.raises(InputError, match="expected a quantity of bytes above zero"):
        max_file_bytes()
