"""Unusable output paths are refused before the work starts whose result they would get."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.base.output_paths import check_output_file


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("new.json", "", id="a new file"),
        pytest.param("old.json", "", id="an older file"),
        pytest.param(os.devnull, "", id="a device"),
        pytest.param("folder", "--x: expected a file, got '{folder}/folder', a folder", id="a folder"),
        pytest.param(
            "no/new.json",
            "--x: expected a path in a writable folder, got '{folder}/no', which does not exist; try mkdir -p {folder}/no",
            id="a folder that does not exist",
        ),
        pytest.param(
            "old.json/new.json",
            "--x: expected a path in a writable folder, got '{folder}/old.json', which does not exist; "
            "try mkdir -p {folder}/old.json",
            id="a file as folder",
        ),
    ],
)
def test_an_output_path_must_be_a_file_in_an_existing_folder(name: str, want: str, tmp_path: Path) -> None:
    (tmp_path / "old.json").touch()
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    error = ""
    try:
        check_output_file(tmp_path / name, "--x")
    except InputError as refused:
        error = str(refused)
    assert error == want.format(folder=tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_an_output_path_in_a_read_only_file_system_is_refused() -> None:
    with pytest.raises(InputError, match=r"--x: expected a path in a writable folder, got '/proc' \("):
        check_output_file(Path("/proc/new.json"), "--x")
