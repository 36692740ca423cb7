"""Find names that docs/wording.md forbids among the identifiers of the package."""

import ast
import re
from collections.abc import Iterator

from tests.project.tree import name_of, python_files

LIMIT = re.compile(r"^_?(MOST|LEAST|LONGEST|SHORTEST|LARGEST|FEW|MANY)_(?!ALLOCATED$)[A-Z]")
"""Prefixes of constants that should be MAX_ or MIN_.

MostAllocated and LeastAllocated are scoring strategies of Kubernetes.
"""

WORDS = frozenset(
    {
        "acquaintances",
        "anew",
        "beside",
        "company",
        "convoy",
        "convoys",
        "crowd",
        "crowds",
        "flock",
        "flocks",
        "hardly",
        "hopeless",
        "house",
        "meanwhile",
        "narrator",
        "nobody",
        "outlook",
        "pace",
        "said",
        "say",
        "says",
        "somebody",
        "strikes",
        "supposed",
        "supposing",
        "tell",
        "tells",
        "told",
        "vain",
        "whoever",
        "worlds",
    }
)
"""Words that no identifier may contain."""


def words_of(name: str) -> set[str]:
    """Return the words of an identifier or an option in lower case."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_").split("_"))


def is_ruled_out(name: str) -> bool:
    """Return whether the rules forbid a name."""
    return LIMIT.match(name) is not None or not WORDS.isdisjoint(words_of(name))


def identifiers(source: bytes) -> Iterator[str]:
    """Yield the names that a module defines: classes, functions, arguments, variables and attributes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def ruled_out_names() -> set[str]:
    """Return the forbidden names of identifiers and modules, each in the form ``package name``."""
    found: set[str] = set()
    for path in python_files("src"):
        package = name_of(path).removeprefix("src/bayplan/").partition("/")[0].removesuffix(".py")
        names = {path.stem, *identifiers(path.read_bytes())}
        found |= {f"{package} {name}" for name in names if is_ruled_out(name)}
    return found
