"""The files of the repository that the tests of the project's rules check: those that are committed or would be."""

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
    """Return the absolute paths of all files of the repository, sorted."""
    top = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    inside = [path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.is_file()]
    return sorted(path for path in top + inside if not {"__pycache__", "_compiled"} & {*path.parts})


def text_files() -> list[Path]:
    """Return the paths of the files that people write: code, documentation, manifests, settings."""
    return [path for path in repository_files() if path.suffix in TEXT]


def python_files(*folders: str) -> list[Path]:
    """Return the paths of the Python files in some folders of the repository, by default in all."""
    chosen = [ROOT / name for name in folders or FOLDERS]
    return [path for path in repository_files() if path.suffix == ".py" and any(f in path.parents for f in chosen)]


def documents() -> list[Path]:
    """Return the paths of the Markdown files."""
    return [path for path in repository_files() if path.suffix == ".md"]


def name_of(path: Path) -> str:
    """Return a path relative to the repository, with forward slashes."""
    return path.relative_to(ROOT).as_posix()
