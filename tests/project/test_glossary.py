"""Identifiers and command-line options follow docs/wording.md."""

import re

import pytest

from bayplan.cli.reference import reference
from tests.project.glossary import identifiers, is_ruled_out, ruled_out_names
from tests.project.tree import ROOT

CONSTANT = re.compile(r"^(?:export )?const ([A-Z][A-Z_0-9]+)\b", re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("MOST_PENDING", True, id="a limit without MAX_"),
        pytest.param("_LEAST_NAMES", True, id="a private limit without MIN_"),
        pytest.param("MAX_PENDING", False, id="a limit with MAX_"),
        pytest.param("MostAllocated", False, id="a name of Kubernetes"),
        pytest.param("LEAST_ALLOCATED", False, id="a constant for a name of Kubernetes"),
        pytest.param("LEAST_ALLOCATED_NODES", True, id="a limit that begins like a name of Kubernetes"),
        pytest.param("_begin_anew", True, id="a word in a private function"),
        pytest.param("PointSaid", True, id="a word in a class"),
        pytest.param("failures-told", True, id="a word in an option"),
        pytest.param("storytelling", False, id="a part of a word"),
    ],
)
def test_names_are_checked_word_by_word(name: str, want: bool) -> None:
    assert is_ruled_out(name) is want


def test_identifiers_include_every_name_a_module_defines() -> None:
    source = b"class A:\n    def b(self, c):\n        self.d = e = c.f(g)\n\nasync def h(*, i: int): ...\nJ: int = 1\n"
    assert set(identifiers(source)) == {"A", "b", "self", "c", "d", "e", "h", "i", "J"}


def test_identifiers_follow_the_glossary() -> None:
    assert sorted(ruled_out_names()) == [], "see docs/wording.md for the right word"


def test_javascript_constants_follow_the_glossary() -> None:
    files = sorted((ROOT / "src" / "bayplan" / "ui" / "static").rglob("*.js"))
    constants = {(path.name, name) for path in files for name in CONSTANT.findall(path.read_text(encoding="utf-8"))}
    assert len(constants) > 10
    assert sorted((file, name) for file, name in constants if is_ruled_out(name)) == []


def test_options_follow_the_glossary() -> None:
    options = set(re.findall(r"(?<![\w-])--([a-z][\w-]*)", reference()))
    assert len(options) > 50
    assert sorted(option for option in options if is_ruled_out(option)) == []
