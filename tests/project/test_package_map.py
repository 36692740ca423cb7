"""The diagram of the packages agrees with the source, and no modules import each other in a cycle."""

from __future__ import annotations

import subprocess
import sys

from tests.project.tree import ROOT


def test_the_package_map_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "package_map.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_packages_have_no_import_cycles() -> None:
    assert 'class="cycle"' not in (ROOT / "docs" / "images" / "package-map.svg").read_text(encoding="utf-8")
