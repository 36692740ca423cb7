"""Measure what each extra of Bayplan costs: packages and megabytes in an empty environment, and imports.

    python scripts/measure_extras.py [WHEEL]

WHEEL is installed; if it is not given, a wheel without compiled modules is built. The versions are those of
constraints.txt. Prints the rows of the table in docs/dependencies.md. Imports are measured in CPU time, the best of
five.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS = 5
IMPORTS = {
    "": "import bayplan; bayplan.Cluster; bayplan.simulate",
    "server": "import bayplan.app.api_service",
    "live": "import bayplan.app.live_scheduler, kubernetes.aio.config.kube_config, aiohttp",
    "parquet": "import bayplan; bayplan.open_result",
    "pandas": "import bayplan, pandas; bayplan.open_result",
    "all": "import bayplan.app.api_service, bayplan.app.live_scheduler, kubernetes.aio.config.kube_config, bayplan, pandas; "
    "bayplan.open_result",
}
"""The imports that are timed, by extra."""

_TIMED = "import time; began = time.process_time(); {}; print(time.process_time() - began)"


def pip(python: Path, *words: str) -> str:
    """Run pip, and return its output.

    Raises:
        subprocess.CalledProcessError: pip failed.
    """
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *words]
    environment = {**os.environ, "BAYPLAN_COMPILE": "0"}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def megabytes(folder: Path) -> float:
    """Return the size of the files in a folder in megabytes, without pip and setuptools."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    kept = (path for path in files if not path.relative_to(folder).parts[0].startswith(("pip", "setuptools")))
    return sum(path.stat().st_size for path in kept) / 1e6


def main() -> int:
    """Print a row for each extra."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if len(sys.argv) > 1:
            wheel = Path(sys.argv[1])
        else:
            pip(Path(sys.executable), "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", scratch, str(ROOT))
            wheel = next(folder.glob("*.whl"))
        for extra, imports in IMPORTS.items():
            environment = folder / (extra or "none")
            subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
            python = environment / "bin" / "python"
            wanted = f"{wheel}[{extra}]" if extra else str(wheel)
            pip(python, "install", "--quiet", "--constraint", str(ROOT / "constraints.txt"), wanted)
            packages = len(
                pip(python, "list", "--format", "freeze", "--exclude", "pip", "--exclude", "setuptools").split()
            )
            size = megabytes(next((environment / "lib").glob("python*/site-packages")))
            command = [str(python), "-c", _TIMED.format(imports)]
            runs = [
                float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=scratch).stdout)
                for _ in range(RUNS)
            ]
            name = f"`bayplan[{extra}]`" if extra else "`bayplan`"
            print(f"| {name} | {packages} | {size:.0f} MB | {min(runs) * 1000:.0f} ms |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
