"""Check a release and print its notes; see docs/release.md.

    python scripts/release.py check v0.1.0    fail with a message if the tag, the version and the changelog disagree
    python scripts/release.py notes v0.1.0    print the section of the changelog

Needs only the standard library, because it runs before anything is installed.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION_FILE = "src/bayplan/base/version.py"


def version_of(root: Path) -> str:
    """Return the version of the package, as in its source."""
    found = re.search(r'^__version__ = "([^"]+)"', (root / VERSION_FILE).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


def section(root: Path, version: str) -> tuple[str, str] | None:
    """Return the heading and the text of a version's section in the changelog, or None if there is none."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## ({re.escape(version)}\b[^\n]*)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return None if found is None else (found[1], found[2].strip())


def problems(root: Path, tag: str) -> list[str]:
    """Return the reasons why a tag can't be released."""
    version = version_of(root)
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and {VERSION_FILE} has {version}: expected v{version}")
    entry = section(root, version)
    if entry is None:
        found.append(f"CHANGELOG.md has no section {version}")
    elif not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", entry[0]):
        found.append(f"CHANGELOG.md: expected the heading '## {version} (YYYY-MM-DD)', got '## {entry[0]}'")
    return found


def main(arguments: list[str]) -> int:
    """Run `check` or `notes` and return the exit code."""
    if len(arguments) != 2 or arguments[0] not in ("check", "notes"):
        print(__doc__, file=sys.stderr)
        return 2
    action, tag = arguments
    wrong = problems(ROOT, tag)
    for problem in wrong:
        print(f"scripts/release.py: {problem}", file=sys.stderr)
    if wrong:
        return 1
    entry = section(ROOT, version_of(ROOT))
    if action == "notes" and entry is not None:
        print(entry[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
