"""Finding compiled modules: the right variant, no outdated ones, and the Python sources on request."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from building.checked import checked_environment
from building.compilers import Compiler, NoCompilerError, find_compiler
from building.extensions import MANIFEST, BuildError, folder_of, is_current
from building.modules import CHECKED, Module, Sources, all_variants, has_x86_64_v3, variant_of_this_machine

from bayplan.base.build import BASELINE, V3, cpu_has_v3
from tests.building.sample import build_sample, run, write_sample
from tests.missing import missing

USE = """
import pickle, weakref
from bayplan import columns, fit
from bayplan.columns import Box, Colour, Columns, Pair, Rule, Spec
class Odd(Rule):
    def filter(self, row): return row % 2
class Bad(Rule):
    def filter(self, row): raise ValueError("mine")
c = Columns(4)
found = [fit.failing([fit.Fit(c, 11), fit.Fit(c, 3), Odd(c)], 4)]
found += [c.share(1), c.share(1, parts=-4), c.doubled, list(c.rows()), Columns.LIMIT, columns.FACTOR]
found += [pickle.loads(pickle.dumps(c)).size, weakref.ref(c)() is c, Pair(1)._asdict(), Colour(1).nice()]
found += [Spec("a"), Spec.kind, Box[int](3).value, pickle.loads(pickle.dumps(Spec("b", [1])))]
try:
    fit.failing([Bad(c)], 4)
except ValueError as problem:
    found.append(str(problem))
print(found)
"""
USED = (
    "[6, 21, -14, 8, [0, 1, 2, 3], 5, 7, 4, True, {'x': 1, 'y': 2}, 'red', "
    "Spec(name='a', parts=[]), 'spec', 3, Spec(name='b', parts=[1]), 'mine']\n"
)
NAME = "from bayplan import fit; from bayplan.base.build import build_name; print(build_name()); print(fit.__file__)"


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    try:
        return find_compiler(install_zig=False)
    except NoCompilerError as problem:
        missing(f"nothing compiles here: {problem}")


@pytest.fixture(scope="session")
def built(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sample") / "src"
    write_sample(root)
    assert build_sample(root, compiler) == 3
    return root


@pytest.fixture
def sample(built: Path, tmp_path: Path) -> Path:
    """A copy of the built sample that a test may change."""
    shutil.copytree(built, tmp_path / "src")
    shutil.copytree(built.parent / "scratch", tmp_path / "scratch")
    return tmp_path / "src"


def last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]


@pytest.mark.parametrize(
    "environment",
    [{}, {"BAYPLAN_VARIANT": BASELINE}, {"BAYPLAN_UNCOMPILED": "1"}],
    ids=["as it comes", "baseline", "uncompiled"],
)
def test_all_kinds_of_classes_behave_the_same_in_each_build(built: Path, environment: dict[str, str]) -> None:
    done = run(built, USE, **environment)
    assert (done.stdout, done.stderr) == (USED, "")


def test_build_name_reports_the_running_build(built: Path, compiler: Compiler) -> None:
    best = V3 if has_x86_64_v3() and cpu_has_v3() else None
    name, file = run(built, NAME).stdout.splitlines()
    assert name.startswith(f"compiled ({compiler.name}, {best or ''}")
    assert Path(file).parent.name == (best or BASELINE)
    assert Path(run(built, NAME, BAYPLAN_VARIANT=BASELINE).stdout.splitlines()[1]).parent.name == BASELINE


def test_a_checkout_compiled_for_another_cpu_asks_for_a_build(built: Path, sample: Path, compiler: Compiler) -> None:
    if not (has_x86_64_v3() and cpu_has_v3()):
        pytest.skip(f"this machine has one variant, not {V3}")
    with (sample / "bayplan" / "fit.py").open("a") as source:
        source.write("\n")
    assert build_sample(sample, compiler, [V3]) == 1
    assert run(sample, USE).stdout == USED
    line = last_line(run(sample, NAME, BAYPLAN_VARIANT=BASELINE).stderr)
    assert line.startswith(
        'ImportError: bayplan.fit: it was compiled for x86-64-v3, not for baseline; run "BAYPLAN_VARIANT=baseline make build"'
    )
    assert not is_current(Sources(sample, frozenset({"bayplan.fit"})), [BASELINE])
    assert build_sample(sample, compiler, [BASELINE]) == 1
    assert run(sample, USE, BAYPLAN_VARIANT=BASELINE).stdout == USED
    line = last_line(run(sample, NAME, BAYPLAN_VARIANT=V3).stderr)
    assert line.endswith('; run "BAYPLAN_VARIANT=x86-64-v3 make build"')


def test_a_checkout_is_compiled_for_the_variant_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    best = V3 if has_x86_64_v3() and cpu_has_v3() else BASELINE
    for wanted, want in (("", best), (BASELINE, BASELINE), ("checked", best)):
        monkeypatch.setenv("BAYPLAN_VARIANT", wanted)
        assert variant_of_this_machine() == want
    assert set(all_variants()) >= {BASELINE, best}


def test_uncompiled_sources_run_on_request(built: Path) -> None:
    name, file = run(built, NAME, BAYPLAN_UNCOMPILED="1").stdout.splitlines()
    assert (name, Path(file).name) == ("uncompiled", "fit.py")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_uncompiled_sources_run_in_child_processes(built: Path, tmp_path: Path, method: str) -> None:
    (built / f"child_{method}.py").write_text(
        "import multiprocessing\nfrom bayplan import fit\nfrom bayplan.base.build import build_name\n"
        "def name(_): return [build_name(), fit.__file__.rpartition('.')[2]]\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context('{method}').Pool(1) as pool: print(pool.map(name, [1]))\n"
    )
    program = f"import runpy; runpy.run_path('child_{method}.py', run_name='__main__')"
    assert run(built, program, BAYPLAN_UNCOMPILED="1").stdout == "[['uncompiled', 'py']]\n"


@pytest.mark.parametrize(
    "file",
    ["fit.py", "fit.pxd", "columns.pxd", "base/go.pxd", "base/go_arithmetic.h"],
    ids=["its source", "its declarations", "those of a module it uses", "those without a module", "a header"],
)
def test_a_changed_source_raises_import_error(sample: Path, file: str) -> None:
    with (sample / "bayplan" / file).open("a") as source:
        source.write("\n")
    line = last_line(run(sample, "from bayplan import fit").stderr)
    assert line == (
        f"ImportError: bayplan.fit: bayplan/{file} has changed since it was compiled; "
        'run "make build", or set BAYPLAN_UNCOMPILED=1 to run the Python sources'
    )
    assert run(sample, NAME, BAYPLAN_UNCOMPILED="1").stdout.startswith("uncompiled\n")


def test_an_uncompiled_module_next_to_compiled_ones_raises_import_error(sample: Path) -> None:
    for suffix in (".py", ".pxd"):
        shutil.copy(sample / "bayplan" / f"columns{suffix}", sample / "bayplan" / f"more{suffix}")
    line = last_line(run(sample, "import bayplan.more").stderr)
    assert line.startswith("ImportError: bayplan.more: other modules are compiled, but this one is not; run ")


@pytest.mark.parametrize(
    ("file", "count"),
    [
        pytest.param(None, 0, id="nothing changed"),
        pytest.param("fit.py", 1, id="one source"),
        pytest.param("columns.pxd", 2, id="declarations that another module reads"),
    ],
)
def test_only_modules_with_changed_sources_are_compiled(
    sample: Path, compiler: Compiler, file: str | None, count: int
) -> None:
    if file is not None:
        with (sample / "bayplan" / file).open("a") as source:
            source.write("\n")
    assert build_sample(sample, compiler) == count
    assert run(sample, USE).stdout == USED


def test_a_module_that_fails_to_compile_is_named_and_the_rest_are_compiled(sample: Path, compiler: Compiler) -> None:
    with (sample / "bayplan" / "columns.py").open("a") as source:
        source.write("def wrong(:\n")
    (sample / "bayplan" / "fit.py").write_text((sample / "bayplan" / "fit.py").read_text() + "\n")
    with pytest.raises(BuildError, match=r"(?s)bayplan\.columns: .*def wrong"):
        build_sample(sample, compiler)
    assert json.loads((folder_of(Sources(sample)) / MANIFEST).read_text())["modules"].keys() == {
        "bayplan._cyutility",
        "bayplan.fit",
    }


@pytest.mark.parametrize(
    ("variant", "want"),
    [
        pytest.param("fast", "BAYPLAN_VARIANT: expected baseline, x86-64-v3 or checked, got 'fast'", id="unknown"),
        pytest.param("checked", 'run "make build-checked"', id="not built"),
    ],
)
def test_an_unavailable_variant_is_refused(built: Path, variant: str, want: str) -> None:
    assert want in last_line(run(built, NAME, BAYPLAN_VARIANT=variant).stderr)


def test_an_installed_package_skips_source_comparison(sample: Path) -> None:
    path = folder_of(Sources(sample)) / MANIFEST
    facts = json.loads(path.read_text())
    for built in facts["modules"].values():
        built["sources"] = {}
    path.write_text(json.dumps(facts | {"in_checkout": False}))
    (sample / "bayplan" / "fit.py").write_text("# Changed.\n")
    assert run(sample, USE).stdout == USED


def test_free_threaded_python_without_the_gil_runs_the_sources(built: Path) -> None:
    free_threaded = "import sys; sys._is_gil_enabled = lambda: False\n"
    assert run(built, free_threaded + NAME).stdout.startswith("uncompiled\n")


def test_tracebacks_show_source_lines(built: Path) -> None:
    done = run(built, "from bayplan import columns, fit\nfit.failing([3], 4)")
    assert 'File "bayplan/fit.py", line ' in done.stderr
    assert "    for rule in rules:" in done.stderr


def test_source_files_of_a_module_include_its_cimports(built: Path) -> None:
    sources = Sources(built)
    assert sources.files_of(Module("bayplan.fit", Path("bayplan/fit.py"))) == [
        *("bayplan/base/go.pxd", "bayplan/base/go_arithmetic.h"),
        *("bayplan/columns.pxd", "bayplan/fit.pxd", "bayplan/fit.py"),
    ]
    assert [module.name for module in sources.modules()] == ["bayplan.columns", "bayplan.fit"]


def test_the_checked_build_raises_on_out_of_range_rows_and_none(sample: Path, compiler: Compiler) -> None:
    try:
        environment = checked_environment(compiler)
    except NoCompilerError as problem:
        missing(str(problem))
    assert build_sample(sample, compiler, [CHECKED]) == 3
    setup = "from bayplan.base.build import build_name\nfrom bayplan.columns import Columns\nfrom bayplan import fit\n"
    good = run(sample, setup + "print(build_name(), fit.failing([fit.Fit(Columns(4), 11)], 4))", **environment)
    assert good.stdout.endswith(" checked) 4\n"), good.stderr
    for call in ("fit.failing([fit.Fit(Columns(4), 11)], 5)", "fit.failing([fit.Fit(Columns(4), 11)], 2**40)"):
        assert last_line(run(sample, setup + call, **environment).stderr).startswith("IndexError: ")
    none = run(sample, setup + "fit.failing([fit.Fit(None, 11)], 1)", **environment)
    assert last_line(none.stderr) == "AttributeError: 'NoneType' object has no attribute 'free'"
