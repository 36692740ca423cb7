"""`bayplan store check` reports what is damaged and where; `repair` writes a new file with all undamaged data."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.apiserver.store.durable import DurableRecorder
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.repair import check_store, name_of, repair_store
from bayplan.apiserver.store.store import Store
from bayplan.base.errors import InputError
from bayplan.cli.main import main
from tests.apiserver.store.test_damage import FLIPS, contents, filled, flip


def names(path: Path) -> set[str]:
    return {name_of(*key) for key in check_store(path).rows}


def test_check_store_reads_every_object_of_an_intact_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    filled(path).close()
    report = check_store(path)
    revision, items = contents(path)
    assert report.is_intact
    assert report.revision == revision
    assert {(row[1], row[2], row[6]) for row in report.rows.values()} == {
        (item.namespace, item.name, item.raw) for item in items
    }


def test_check_store_reads_a_store_with_20000_objects(tmp_path: Path) -> None:
    path, store = tmp_path / "store", Store()
    recorder = DurableRecorder(path, store, on_failure=print)
    for number in range(20_000):
        store.put("pods", Item(b"{}", number + 1, f"namespace-{number % 7}", f"a-long-name-{number}", "u", {}, {}))
    recorder.close()
    report = check_store(path)
    assert (len(report.rows), report.is_intact, report.revision) == (20_000, True, 20_000)


def test_a_damaged_object_is_reported_with_its_offset_and_repair_preserves_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, new = tmp_path / "store", tmp_path / "store.repaired"
    filled(path, 60).close()
    revision, items = contents(path)
    at = path.read_bytes().index(b'"name":"p7"')
    flip(path, at * 8)
    before = path.read_bytes()
    assert main(["store", "check", str(path)]) == 1
    printed = capsys.readouterr().out
    damage = check_store(path).damage
    assert [each.what for each in damage] == ["secrets default/p7"]
    assert damage[0].offset < at < damage[0].offset + 20_000
    assert (
        f"damaged: secrets default/p7 (page {damage[0].page}, byte {damage[0].offset}): its checksum does not match"
        in printed
    )
    assert f"try: bayplan store repair {path}" in printed
    assert main(["store", "repair", str(path)]) == 1
    assert "58 objects; 1 places with objects that are lost" in capsys.readouterr().out
    assert path.read_bytes() == before
    assert contents(new) == (revision, [item for item in items if item.name != "p7"])
    assert new.stat().st_mode & 0o077 == 0
    assert main(["store", "check", str(new)]) == 0


@pytest.mark.parametrize("seed", range(3))
def test_repair_preserves_every_readable_object_and_reports_losses(seed: int, tmp_path: Path) -> None:
    original, copy = tmp_path / "original", tmp_path / "copy"
    filled(original).close()
    want = {name_of(*key): row for key, row in check_store(original).rows.items()}
    draw = random.Random(seed)
    bits = original.stat().st_size * 8
    for number in range(FLIPS // 20):
        shutil.copy(original, copy)
        for _ in range(1 + number % 5):
            flip(copy, draw.randrange(bits))
        report = check_store(copy)
        found = {name_of(*key): row for key, row in report.rows.items()}
        assert all(want[name] == row for name, row in found.items())
        if set(found) != set(want):
            assert any(each.is_lost for each in report.damage)
        new = tmp_path / f"new{number}"
        repair_store(copy, new)
        assert {(item.namespace, item.name) for item in contents(new)[1]} == {row[1:3] for row in found.values()}


def test_objects_below_a_damaged_page_are_recovered(tmp_path: Path) -> None:
    path = tmp_path / "store"
    filled(path).close()
    want = names(path)
    # Destroys the type of the table's root page, the only page that refers to its other pages.
    with sqlite3.connect(path) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'documents'").fetchone()[0]
    connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\x07")
    found = check_store(path)
    assert not found.is_intact
    assert len(found.rows) > len(want) * 0.8
    assert {name_of(*key) for key in found.rows} < want


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_repair_recovers_the_readable_objects_of_a_truncated_store(share: float, tmp_path: Path) -> None:
    path = tmp_path / "store"
    filled(path).close()
    want = names(path)
    os.truncate(path, int(path.stat().st_size * share))
    report = check_store(path)
    assert any(each.is_lost for each in report.damage)
    assert 0 < len(report.rows) < len(want)
    assert {name_of(*key) for key in report.rows} < want
    repair_store(path, tmp_path / "new")
    assert len(contents(tmp_path / "new")[1]) == len(report.rows)


def test_repair_skips_a_million_revisions_if_the_counter_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store"
    filled(path, 5).close()
    last = max(row[3] for row in check_store(path).rows.values())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE counter SET revision = 3")
    connection.close()
    with pytest.raises(InputError, match="the counter of revisions"):
        contents(path)
    report = repair_store(path, tmp_path / "new")
    assert [each.what for each in report.damage] == ["counter of revisions"]
    assert contents(tmp_path / "new")[0] == report.revision == last + 1_000_000


def test_check_store_reads_the_write_ahead_log_without_changing_files(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    recorder = filled(source)
    shutil.copy(source, copy)
    shutil.copy(tmp_path / "source-wal", tmp_path / "copy-wal")
    recorder.close()
    before, files = (copy.read_bytes(), (tmp_path / "copy-wal").read_bytes()), sorted(os.listdir(tmp_path))
    found = names(copy)
    assert (copy.read_bytes(), (tmp_path / "copy-wal").read_bytes()) == before
    assert sorted(os.listdir(tmp_path)) == files
    assert found == names(source)
    flip(tmp_path / "copy-wal", (32 + 24 + 2000) * 8)
    assert any(each.what == "write-ahead log" for each in check_store(copy).damage)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(["check", "nowhere"], "nowhere: no such file", id="no file"),
        pytest.param(["repair", "store", "--out", "store"], "--out: expected a new file", id="in place"),
        pytest.param(["mend", "store"], "Invalid value", id="no such action"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: list[str], want: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    filled(Path("store"), 3).close()
    assert main(["store", *arguments]) == 2
    assert want in capsys.readouterr().err


@pytest.mark.parametrize("size", [0, 50, 5000])
def test_a_file_that_is_not_a_database_is_refused(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("a" * size)
    assert main(["store", "check", "notes.txt"]) == 2
    assert "notes.txt: expected a database file of bayplan up --store" in capsys.readouterr().err


def test_checking_a_store_in_use_is_refused(tmp_path: Path) -> None:
    recorder = filled(tmp_path / "store", 3)
    command = [sys.executable, "-m", "bayplan", "store", "check", "store"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "a store that another process has locked" in done.stderr
    recorder.close()
