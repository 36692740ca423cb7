"""Paths, folders, patterns, standard input and gzip."""

import gzip
import io
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.formats.files import InputFile, find_files, read_bytes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.yaml", "a/z.json", "a/b/c.yml.gz", "a.jsonl", "notes.txt", "a/pods.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x: 1")
    return tmp_path


def _names(files: list[InputFile], folder: Path) -> list[str]:
    return [str(Path(file.name).relative_to(folder)) for file in files]


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("", ["a/b/c.yml.gz", "a/z.json", "a.jsonl", "b.yaml"], id="a folder is read whole, sorted"),
        pytest.param("notes.txt", ["notes.txt"], id="a named file may be called anything"),
        pytest.param("*.yaml", ["b.yaml"], id="a pattern"),
        pytest.param("**/*.json", ["a/z.json"], id="a pattern for all depths"),
    ],
)
def test_find_files_expands_folders_and_glob_patterns(folder: Path, path: str, want: list[str]) -> None:
    assert _names(find_files([str(folder / path) if path else str(folder)]), folder) == want


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("b.yam", "b.yaml", id="a misspelt name"),
        pytest.param("*.toml", "no match", id="a pattern without a match"),
        pytest.param("empty", "no such files", id="a folder without manifests"),
    ],
)
def test_missing_files_and_empty_matches_are_refused(folder: Path, path: str, want: str) -> None:
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=want):
        find_files([str(folder / path)])


def test_the_tables_of_a_folder_are_suggested_as_patterns(tmp_path: Path) -> None:
    for name in ("nodes.csv", "tasks.csv", "more.csv.gz", "notes.txt"):
        (tmp_path / name).touch()
    with pytest.raises(InputError) as raised:
        find_files([str(tmp_path)])
    assert str(raised.value).endswith(f"got no such files; try '{tmp_path}/*.csv' '{tmp_path}/*.csv.gz'")


def test_an_existing_path_with_glob_characters_is_not_expanded(tmp_path: Path) -> None:
    (tmp_path / "a[1].yaml").write_text("x: 1")
    assert [file.suffix for file in find_files([str(tmp_path / "a[1].yaml")])] == [".yaml"]


def test_gzip_is_detected_by_content(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_bytes(b"x: 1")
    (tmp_path / "packed.yaml").write_bytes(gzip.compress(b"x: 2"))
    read = [read_bytes(file) for file in find_files([str(tmp_path / "plain.gz"), str(tmp_path / "packed.yaml")])]
    assert read == [b"x: 1", b"x: 2"]


def test_a_dash_reads_standard_input() -> None:
    (file,) = find_files(["-"])
    assert (file.name, read_bytes(file, stdin=io.BytesIO(gzip.compress(b"x: 1")))) == ("<stdin>", b"x: 1")
    with pytest.raises(InputError, match="standard input"):
        read_bytes(file)


def test_invalid_gzip_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b"x: 1" * 1000)
    for number, data in enumerate((whole[:-12], whole[:20] + b"\0" + whole[21:], b"\x1f\x8b")):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(data)
        with pytest.raises(InputError, match="gzip"):
            read_bytes(InputFile(str(path), path))


def test_reading_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="directory"):
        read_bytes(InputFile("x", tmp_path))


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param(b"PAR1\x15\x04", "got a Parquet file", id="Parquet"),
        pytest.param(b"PK\x03\x04\x14\0", "got a ZIP archive", id="ZIP"),
    ],
)
def test_files_of_other_formats_are_named(tmp_path: Path, data: bytes, want: str) -> None:
    (tmp_path / "jobs.dat").write_bytes(data)
    with pytest.raises(InputError, match=rf"jobs\.dat: expected YAML or JSON.* {want}"):
        read_bytes(InputFile("jobs.dat", tmp_path / "jobs.dat"))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_with_a_suggestion(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes("\ufeff{}".encode(encoding))
    with pytest.raises(InputError, match=r"dump\.json: expected UTF-8, got UTF-16; try iconv -f utf-16 -t utf-8"):
        read_bytes(InputFile("dump.json", path))


@pytest.mark.parametrize("text", ["http://localhost:6443", "localhost:6443"])
def test_a_server_is_no_file(text: str) -> None:
    with pytest.raises(InputError, match="no such file or folder; try kubectl get -o yaml"):
        find_files(["http://localhost:6443"])
