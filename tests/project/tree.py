"""The files of the repository, as the tests of the project's rules see them: what is committed, or would be."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "src",
    "building",
    "tests",
    "docs",
    "benchmarks",
    "fuzz",
    "scripts",
    "examples",
    ".ci",
    "conformance",
    ".github",
)
TEXT = frozenset(
    {
        ".py",
        ".pyi",
        ".pxd",
        ".h",
        ".md",
        ".toml",
        ".yaml",
        ".yml",
        ".json",
        ".txt",
        ".sh",
        ".cfg",
        ".html",
        ".js",
        ".mjs",
        ".ts",
        ".css",
        "",
    }
)


def repository_files() -> list[Path]:
    """Return all files of the repository, as absolute paths, sorted."""
    top = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    inside = [path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.is_file()]
    return sorted(path for path in top + inside if not {"__pycache__", "_compiled"} & {*path.parts})


def text_files() -> list[Path]:
    """Return the files that people write: code, documentation, manifests, settings."""
    return [path for path in repository_files() if path.suffix in TEXT]


def python_files(*folders: str) -> list[Path]:
    """Return the Python files under these folders of the repository; of all folders when none is given."""
    chosen = [ROOT / name for name in folders or FOLDERS]
    return [path for path in repository_files() if path.suffix == ".py" and any(f in path.parents for f in chosen)]


def documents() -> list[Path]:
    """Return the Markdown files."""
    return [path for path in repository_files() if path.suffix == ".md"]


def name_of(path: Path) -> str:
    """Return a path in the repository's spelling, with forward slashes."""
    return path.relative_to(ROOT).as_posix()
