"""Create an environment with Bayplan, its tests and the lowest or latest dependencies that `pyproject.toml` allows.

    python scripts/bounds.py FOLDER [--latest] [--print]

Every direct dependency gets exactly its lower bound; indirect dependencies get versions that these allow. With
`--latest`, all get the latest versions. `make test-lowest` and `make test-latest` run a selection of the tests in these
environments. `--print` prints the constraints and creates nothing.
"""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("hatchling", "cython", "setuptools", "pytest", "hypothesis", "pytest-xdist")
"""Packages that build Bayplan and run the tests; they have the versions of constraints.txt."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(\[[^]]*\])?>=([^,;\s]+)")


def lower_bounds(project: dict[str, object]) -> dict[str, str]:
    """Return the lower bound of each direct dependency, including those of all extras except ``dev``.

    Raises:
        SystemExit: a dependency has no lower bound.
    """
    optional = project["optional-dependencies"]
    assert isinstance(optional, dict)
    listed = [*_texts(project["dependencies"])]
    for extra, requirements in optional.items():
        if extra != "dev":
            listed += _texts(requirements)
    found: dict[str, str] = {}
    for requirement in listed:
        if requirement.startswith("bayplan["):
            continue
        match = _REQUIREMENT.match(requirement)
        if match is None:
            raise SystemExit(f"pyproject.toml: {requirement!r} has no lower bound; say from which version on it works")
        found[match[1]] = match[3]
    return found


def _texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return [str(each) for each in value]


def tool_versions() -> list[str]:
    """Return the lines of constraints.txt for `TOOLS`."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.partition("==")[0].lower() in TOOLS]


def main() -> int:
    """Create the environment; return pip's exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the new environment")
    parser.add_argument("--latest", action="store_true", help="install the latest versions, not the lowest")
    parser.add_argument("--print", action="store_true", help="print the constraints, and create nothing")
    options = parser.parse_args()
    bounds: dict[str, str] = {}
    if not options.latest:
        with (ROOT / "pyproject.toml").open("rb") as file:
            bounds = lower_bounds(tomllib.load(file)["project"])
    lines = [*(f"{name}=={version}" for name, version in sorted(bounds.items())), *tool_versions()]
    if options.print:
        print("\n".join(lines))
        return 0
    folder: Path = options.folder
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    environment = {**os.environ, "BAYPLAN_COMPILE": "0"}
    for words in (
        ["--constraint", str(constraints), *TOOLS],
        ["--constraint", str(constraints), "--no-build-isolation", "--editable", f"{ROOT}[all,fast]"],
    ):
        code = subprocess.run([*pip, *words], env=environment, check=False).returncode
        if code:
            print("scripts/bounds.py: pip can't install these versions together; change a bound", file=sys.stderr)
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
