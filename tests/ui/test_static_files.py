"""The files of the page are complete, short and self-hosted, and never insert data as markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from bayplan.ui.static_files import TYPES, load_static_files

FOLDER = Path(__file__).resolve().parents[2] / "src" / "bayplan" / "ui" / "static"
MODULES = sorted(FOLDER.rglob("*.js"))
STATIC = load_static_files()
LONGEST = 500


def name_of(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def test_each_file_is_served_with_a_known_type() -> None:
    served = {*STATIC.files, "index.html"}
    assert served == {name_of(path) for path in FOLDER.rglob("*") if path.is_file()}
    assert {Path(name).suffix for name in served} <= TYPES.keys()
    assert all(shell.body.count(STATIC.digest.encode()) > 5 for shell in STATIC.shells.values())


@pytest.mark.parametrize(
    ("address", "want", "unwanted"),
    [
        pytest.param("/", "pages/overview.js", "pages/pods.js", id="the root"),
        pytest.param("/pods", "grid.js", "matrix.js", id="a list"),
        pytest.param("/pods/shop/web-0", "matrix_layout.js", "grid.js", id="an object with any name"),
        pytest.param("/no/such/page", "shell.js", "pages/", id="an address without a page"),
    ],
)
def test_the_shell_preloads_exactly_the_modules_of_its_page(address: str, want: str, unwanted: str) -> None:
    links = re.findall(r'<link rel="modulepreload" href="/ui/static/\w+/([^"]+)">', STATIC.shell(address).body.decode())
    assert want in links
    assert "shell.js" in links
    assert not any(unwanted in link for link in links)
    assert len(links) == len(set(links))
    assert set(links) <= STATIC.files.keys()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_are_short_documented_and_import_existing_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert re.match(r"// [A-Z].*[.:?!]", text)
    for target in re.findall(r'^(?:import .*|\} )from "([^"]+)";$', text, re.MULTILINE):
        assert target.startswith("."), "nothing of others"
        assert (path.parent / target).exists()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_use_no_api_that_turns_text_into_markup_or_code(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert (
        re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(\"style", text
        )
        == []
    )


def test_files_contain_no_foreign_urls() -> None:
    addresses = {
        found
        for path in FOLDER.rglob("*.*")
        for found in re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8"))
    }
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_each_route_has_a_page_module() -> None:
    assert {page for _, page in STATIC.routes} == {path.stem for path in (FOLDER / "pages").glob("*.js")}


def test_templates_are_valid_yaml() -> None:
    source = (FOLDER / "templates.js").read_text(encoding="utf-8")
    texts = re.findall(r"text: `([^`]*)`", source)
    assert len(texts) >= 10
    for text in texts:
        for document in yaml.safe_load_all(text.replace("{n}", "1")):
            assert document["apiVersion"]
            assert document["metadata"]["name"]
