"""Optional packages: what works without them, errors with the command that installs them, and consistent tables."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from bayplan.base.errors import MissingExtra
from bayplan.base.extras import EXTRAS, named_extras

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "src" / "bayplan" / "examples" / "three-zones"
BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def run_without(packages: Sequence[str], program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process in which these packages can't be imported."""
    code = BLOCK.format(packages=tuple(packages)) + program
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def command(*words: str) -> str:
    return f"from bayplan.cli.main import main\nraise SystemExit(main({list(words)!r}))"


@pytest.mark.parametrize(
    ("program", "want"),
    [
        pytest.param(command("simulate", str(EXAMPLE)), "pods", id="simulate"),
        pytest.param(command("explain", "shop/year-in-memory", str(EXAMPLE)), "is pending", id="explain"),
        pytest.param(command("config", "--help"), "configuration", id="config"),
        pytest.param(command("example"), "three-zones", id="example"),
        pytest.param(
            "import bayplan\ncluster = bayplan.Cluster([bayplan.make_node('n').obj()])\n"
            "print(cluster.add(bayplan.make_pod('p').req(cpu='1').obj()))",
            "n",
            id="a cluster in a notebook",
        ),
    ],
)
def test_simulations_and_notebooks_run_without_extras(program: str, want: str) -> None:
    done = run_without([*EXTRAS, "uvloop", "ryaml"], program)
    assert done.returncode == 0, done.stderr
    assert want in done.stdout


@pytest.mark.parametrize(
    ("package", "words", "want"),
    [
        pytest.param("uvicorn", ["up", "--port", "0"], "server", id="up"),
        pytest.param("starlette", ["extender", "--port", "0"], "server", id="extender"),
        pytest.param("aiohttp", ["sync", "--from", "nowhere"], "server", id="sync"),
        pytest.param("kubernetes", ["schedule", "--kubeconfig", "{kubeconfig}"], "live", id="schedule"),
        pytest.param("pyarrow", ["simulate", str(EXAMPLE), "--out", "{folder}/new"], "parquet", id="simulate --out"),
        pytest.param("pyarrow", ["explain", "default/p", "{folder}"], "parquet", id="explain, of a result"),
    ],
)
def test_a_command_with_a_missing_extra_suggests_how_to_install_it(
    package: str, words: list[str], want: str, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{apiVersion: v1, kind: Config}")
    (tmp_path / "summary.json").write_text('{"format": 1, "digest": ""}')
    given = [word.format(folder=tmp_path, kubeconfig=kubeconfig) for word in words]
    done = run_without([package], command(*given))
    assert (done.returncode, done.stderr) == (
        2,
        f"bayplan: {package} is not installed; try pip install '.[{want}]' in a checkout of Bayplan\n",
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("package", "program", "want"),
    [
        pytest.param("pyarrow", "import bayplan\nbayplan.open_result('x')", ".[parquet]", id="open_result"),
        pytest.param(
            "httpx",
            "import bayplan\nbayplan.Cluster(configuration={'apiVersion': 'kubescheduler.config.k8s.io/v1', "
            "'kind': 'KubeSchedulerConfiguration', 'extenders': [{'urlPrefix': 'http://127.0.0.1:9', 'filterVerb': 'f'}]})",
            ".[server]",
            id="a configuration with an extender",
        ),
    ],
)
def test_a_library_call_with_a_missing_extra_suggests_how_to_install_it(package: str, program: str, want: str) -> None:
    done = run_without([package], program)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        f"MissingExtra: {package} is not installed; try pip install '{want}' in a checkout of Bayplan"
    )


def test_other_missing_modules_raise_module_not_found_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), named_extras():
        import no_such_module  # type: ignore[import-not-found]  # noqa: F401


def test_a_missing_submodule_counts_as_its_package() -> None:
    with pytest.raises(MissingExtra, match=r"pip install '\.\[parquet\]'"), named_extras():
        raise ModuleNotFoundError(name="pyarrow.parquet")


def test_the_table_of_extras_matches_pyproject() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        optional = tomllib.load(file)["project"]["optional-dependencies"]
    names = {name: distributions[0].lower() for name, distributions in packages_distributions().items()}
    for package, extra in EXTRAS.items():
        distribution = names.get(package, package).replace("_", "-")
        assert any(each.lower().startswith(distribution) for each in optional[extra]), f"{package} is not in [{extra}]"
    reported = set(EXTRAS.values()) | {"all", "dev", "fast"}
    assert reported == set(optional)


def test_the_server_imports_with_only_the_server_extra() -> None:
    others = [package for package, extra in EXTRAS.items() if extra != "server"]
    done = run_without(
        others, "import bayplan.app.api_service, bayplan.app.simulator_server, bayplan.app.extender_service"
    )
    assert done.returncode == 0, done.stderr
