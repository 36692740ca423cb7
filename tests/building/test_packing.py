"""Contents of wheels, and installation without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from building.modules import ROOT, SUFFIX, checkout_sources

from tests.building.builds import compiled_variants
from tests.missing import nothing_compiled

WITHOUT_ZIG = "import sys; sys.modules['ziglang'] = None; "
BUILD = "from hatchling.cli import hatchling; sys.argv = ['hatchling', 'build', '-t', 'wheel', '-d', {!r}]; hatchling()"


def run(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("BAYPLAN_") and name != "CC"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, env=variables | environment, capture_output=True, text=True, check=False)


def make_wheel(source: Path, target: Path, **environment: str) -> tuple[Path, str]:
    done = run(WITHOUT_ZIG + BUILD.format(str(target)), source, **environment)
    assert done.returncode == 0, done.stderr
    (wheel,) = target.glob("*.whl")
    return wheel, done.stdout + done.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what a wheel is built from, without anything compiled."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "NOTICE", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "building", folder / "building", ignore=shutil.ignore_patterns("__pycache__"))
    ignored = shutil.ignore_patterns("__pycache__", "_compiled")
    shutil.copytree(ROOT / "src" / "bayplan", folder / "src" / "bayplan", ignore=ignored)
    return folder


def test_a_wheel_contains_sources_declarations_and_extensions(tmp_path: Path) -> None:
    if not compiled_variants():
        nothing_compiled()
    wheel, _ = make_wheel(ROOT, tmp_path / "wheels")
    names = zipfile.ZipFile(wheel).namelist()
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.name.split("-")[2:4] == [tag, tag]
    assert not wheel.name.endswith("-any.whl")
    for module in checkout_sources().modules():
        assert module.path is not None
        assert {module.path.as_posix(), module.path.with_suffix(".pxd").as_posix()} <= set(names)
        assert any(name.endswith(f"/{module.name.removeprefix('bayplan.')}{SUFFIX}") for name in names)
    assert {"bayplan/base/go.pxd", "bayplan/base/go_arithmetic.h"} <= set(names)
    assert [name for name in names if "checked" in name and name.endswith(SUFFIX)] == []


def test_an_installed_wheel_runs_compiled_without_comparing_hashes(tmp_path: Path) -> None:
    if not compiled_variants():
        nothing_compiled()
    wheel, _ = make_wheel(ROOT, tmp_path / "wheels")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    (installed / "bayplan" / "testing" / "go_arithmetic_check.py").write_text("# Not read.\n")
    program = (
        "from bayplan.base.build import build_name; from bayplan.testing.go_arithmetic_check import results_hash; "
        "print(build_name(), results_hash(2000))"
    )
    done = run(program, tmp_path, PYTHONPATH=str(installed))
    assert done.stdout.startswith("compiled ("), done.stderr
    assert done.stdout.endswith(") -4148501564501349141\n")


def test_a_wheel_built_without_a_compiler_is_pure_and_prints_one_warning(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "no programs").mkdir()
    wheel, printed = make_wheel(checkout, tmp_path / "wheels", PATH=str(tmp_path / "no programs"))
    assert wheel.name.endswith("-py3-none-any.whl")
    assert [name for name in zipfile.ZipFile(wheel).namelist() if "_compiled" in name] == []
    assert printed.count("Bayplan is installed uncompiled, and runs several times slower: ") == 1


def test_a_required_compilation_fails_without_a_compiler(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "no programs").mkdir()
    program = WITHOUT_ZIG + BUILD.format(str(tmp_path / "wheels"))
    done = run(program, checkout, PATH=str(tmp_path / "no programs"), BAYPLAN_COMPILE="1")
    assert done.returncode != 0
    assert "no C compiler was found; ziglang is not installed" in done.stderr


def test_the_compiler_that_cc_names_is_the_only_candidate(checkout: Path, tmp_path: Path) -> None:
    wheel, printed = make_wheel(checkout, tmp_path / "wheels", CC="/nowhere/cc -O2")
    assert wheel.name.endswith("-py3-none-any.whl")
    reason = "CC=/nowhere/cc -O2 does not work: [Errno 2] No such file or directory: '/nowhere/cc'"
    assert printed.count(f"Bayplan is installed uncompiled, and runs several times slower: {reason}") == 1


def test_building_without_a_compiler_warns_in_one_line_and_succeeds(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "no programs").mkdir()
    build = (
        WITHOUT_ZIG + "import runpy; sys.argv = ['building', '--if-possible', '--no-zig']; runpy.run_module('building')"
    )
    program = build.replace("run_module('building')", "run_module('building', run_name='__main__')")
    done = run(program, checkout, PATH=str(tmp_path / "no programs"))
    assert (done.returncode, done.stdout) == (0, "")
    reason = "no C compiler was found; ziglang is not installed"
    assert done.stderr == f"Running uncompiled, several times slower: {reason}\n"
    version = "from bayplan.cli.main import main; main(['--version'])"
    assert run(version, checkout, PYTHONPATH=str(checkout / "src")).stdout.endswith(", uncompiled\n")
