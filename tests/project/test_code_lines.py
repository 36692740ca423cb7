"""benchmarks/code_lines.py counts the lines that a decision reaches: in a sample package and in this one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.code_lines import (
    ROOT,
    Changes,
    Counts,
    Module,
    changes,
    count,
    package_of,
    reachable_functions,
    reachable_modules,
    read_modules,
)

FILES = {
    "engine/scheduler.py": '''"""A module."""

from bayplan.engine.plan import Plan  # A comment after code.


class Scheduler:
    """A class."""

    def schedule_one(self):
        """A docstring."""
        # A comment.
        return Plan().decide()

    def not_reached(self):
        return 1
''',
    "engine/plan.py": """from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayplan.state.unread import Nothing


class Base:
    def __enter__(self):
        return self


class Plan(Base):
    def __init__(self):
        self.number = helps()

    def decide(self):
        with self:
            return self.number

    def idle(self):
        return 2


def helps():
    return 3
""",
    "engine/plan.pxd": "cdef class Plan:\n    cdef long number  # A comment.\n",
    "engine/__init__.py": "",
    "__init__.py": "",
    "state/unread.py": "Nothing = 1\n",
    "engine/classic/scheduler.py": "x = 1\n",
    "plugins/registry.py": "from bayplan.engine import plan\n",
}


def modules_of(folder: Path, files: Mapping[str, str]) -> dict[str, Module]:
    for name, text in files.items():
        path = folder / "bayplan" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_modules(folder)


def test_modules_are_reached_through_runtime_imports(tmp_path: Path) -> None:
    assert reachable_modules(modules_of(tmp_path, FILES)) == {
        "bayplan",
        "bayplan.engine",
        "bayplan.engine.plan",
        "bayplan.engine.plan.pxd",
        "bayplan.engine.scheduler",
        "bayplan.plugins.registry",
    }


def test_functions_are_reached_through_mentioned_names(tmp_path: Path) -> None:
    modules = modules_of(tmp_path, FILES)
    found = {(it.owner, it.name) for it in reachable_functions(modules, reachable_modules(modules))}
    assert found == {
        ("Scheduler", ""),
        ("Scheduler", "schedule_one"),
        ("Plan", ""),
        ("Plan", "__init__"),
        ("Plan", "decide"),
        ("Base", ""),
        ("Base", "__enter__"),
        ("", "helps"),
    }


def test_line_counts_exclude_blank_lines_comments_and_docstrings(tmp_path: Path) -> None:
    counts = count(modules_of(tmp_path, FILES))
    assert counts["engine"] == Counts(lines=15 + 25 + 2, module_code=6 + 16 + 2, reachable_code=3 + 11 + 2)
    assert counts["engine (classic)"] == Counts(1, 0, 0)
    assert counts["state"] == Counts(1, 0, 0)


def test_changes_distinguish_moved_deleted_and_new_lines(tmp_path: Path) -> None:
    before = modules_of(tmp_path / "before", FILES)
    moved = {
        **FILES,
        "engine/plan.py": FILES["engine/plan.py"].replace("            return self.number\n", "            return 4\n"),
        "engine/scheduler.py": FILES["engine/scheduler.py"].replace(
            "        return Plan().decide()\n", "        Plan().decide()\n        return self.number\n"
        ),
    }
    assert changes(before, before) == {}
    assert changes(before, modules_of(tmp_path / "after", moved)) == {"engine": Changes(deleted=1, moved=1, new=2)}


def test_line_counts_of_this_package_are_plausible() -> None:
    counts = count(read_modules(ROOT / "src"))
    assert all(counts[name].reachable_code > 500 for name in ("engine", "state", "framework", "plugins"))
    assert all(one.lines >= one.module_code >= one.reachable_code for one in counts.values())
    assert "cli" not in {name for name, one in counts.items() if one.module_code}


def test_classic_files_and_folders_are_counted_separately() -> None:
    assert package_of("bayplan.engine.classic.cycle") == "engine (classic)"
    assert package_of("bayplan.plugins.classic") == "plugins (classic)"
    assert package_of("bayplan.classic.cycle") == "classic"
    assert package_of("bayplan.engine.cycle") == "engine"
