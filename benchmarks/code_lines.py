"""Count the lines that a scheduling decision can reach, per package, and those deleted, moved or added since a commit.

    python -m benchmarks.code_lines
    python -m benchmarks.code_lines --against main
    python -m benchmarks.code_lines --functions engine.plan

There are three counts, each of files ending in .py, .pyx and .pxd:

- *lines*: all lines of a package's files, except those in folders and files named classic. Limits are set for this
  count.
- *module code*: lines with code (no blank lines, comments, docstrings) of the modules that `bayplan.engine.scheduler`
  and the table of built-in plugins import, directly or through others, except under TYPE_CHECKING. A module includes
  its packages.
- *reachable code*: of these modules, lines with code of the functions and methods that `Scheduler.schedule_one` can
  reach, by name. A reached function reaches every function, method and property of these modules whose name it
  mentions, and the special methods of every class whose name it mentions, or that it derives from. The result is an
  upper bound: a method is reached if another class's method with the same name is.

A line has moved if it is in a different file than before. Lines are compared without their indentation. Lines of less
than `MIN_MOVED_LENGTH` characters (``return None``) don't count as moved, because they are just as likely new.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BASELINE = Path(__file__).with_suffix(".json")
PACKAGE = "bayplan"
ROOTS = ("bayplan.engine.scheduler", "bayplan.plugins.registry")
START = ("Scheduler", "schedule_one")
CORE = ("engine", "state", "framework", "plugins")
SUFFIXES = (".py", ".pyx", ".pxd")
MIN_MOVED_LENGTH = 16


class Function(NamedTuple):
    """A function or method: name, class (or ""), the code lines of its body, and the names it mentions."""

    module: str
    owner: str
    name: str
    lines: frozenset[int]
    mentions: frozenset[str]


class Module(NamedTuple):
    """A module: its path, the numbers of its lines with code, its imports, and its functions."""

    name: str
    path: Path
    text: list[str]
    code: frozenset[int]
    imports: frozenset[str]
    functions: list[Function]


# Reading.


def package_of(module: str) -> str:
    """Return the package under which a module is counted: ``engine``, or ``engine (classic)``."""
    parts = module.split(".")
    package = parts[1] if len(parts) > 1 else PACKAGE
    return f"{package} (classic)" if "classic" in parts[2:] else package


def code_lines(text: str, tree: ast.AST | None) -> frozenset[int]:
    """Return the numbers of the lines with code: not blank, not a comment, not part of a docstring."""
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in skipped:
                found.update(range(token.start[0], token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):  # Cython syntax that is not valid Python.
        lines = enumerate(text.splitlines(), 1)
        found = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(found)


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Yield the names of modules that a module imports anywhere, except for type checking."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        waiting += ast.iter_child_nodes(node)


def mentions_of(node: ast.AST) -> frozenset[str]:
    """Return all names and attributes that a piece of code mentions, including strings that are identifiers."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
            found.add(part.value)
    return frozenset(found)


def functions_of(module: str, tree: ast.Module, code: frozenset[int]) -> Iterator[Function]:
    """Yield the functions and methods of a module, and each class's statements as a function with the class's name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _function(module, "", node, code)
        elif isinstance(node, ast.ClassDef):
            yield from _class_of(module, node, code)


def _function(module: str, owner: str, node: ast.FunctionDef | ast.AsyncFunctionDef, code: frozenset[int]) -> Function:
    return Function(module, owner, node.name, _lines_of(node, code), mentions_of(node))


def _class_of(module: str, node: ast.ClassDef, code: frozenset[int]) -> Iterator[Function]:
    methods = [it for it in node.body if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)]
    own = _lines_of(node, code).difference(*(_lines_of(method, code) for method in methods))
    bases = frozenset(name for base in node.bases for name in mentions_of(base))
    statements = [it for it in node.body if it not in methods]
    yield Function(module, node.name, "", own, bases.union(*map(mentions_of, statements)))
    for method in methods:
        yield _function(module, node.name, method, code)


def _lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, code: frozenset[int]) -> frozenset[int]:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return code.intersection(range(first, (node.end_lineno or node.lineno) + 1))


def read_modules(source: Path) -> dict[str, Module]:
    """Return all modules of the package by name; a .pxd or .pyx has its module's name with its suffix."""
    modules = {}
    for path in sorted(source.joinpath(PACKAGE).rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text) if path.suffix == ".py" else None
        code = code_lines(text, tree)
        imports = frozenset(imports_of(tree)) if tree else frozenset[str]()
        functions = list(functions_of(name, tree, code)) if tree else []
        key = name if path.suffix == ".py" else f"{name}{path.suffix}"
        modules[key] = Module(name, path, text.splitlines(), code, imports, functions)
    return modules


# Reaching.


def reachable_modules(modules: Mapping[str, Module]) -> set[str]:
    """Return the keys of the modules that the roots import, with their packages and their .pxd files."""
    found: set[str] = set()
    waiting = [name for name in ROOTS if name in modules]
    while waiting:
        name = waiting.pop()
        if name not in modules or name in found:
            continue
        found.add(name)
        parents = name.split(".")
        waiting += [".".join(parents[:count]) for count in range(1, len(parents))]
        waiting += modules[name].imports
        found.update(f"{name}{suffix}" for suffix in SUFFIXES[1:] if f"{name}{suffix}" in modules)
    return found


def reachable_functions(modules: Mapping[str, Module], within: set[str]) -> list[Function]:
    """Return the functions that `START` reaches by name, including itself."""
    functions = [function for name in within for function in modules[name].functions]
    named: dict[str, list[Function]] = {}
    of_class: dict[str, list[Function]] = {}
    for function in functions:
        named.setdefault(function.name or function.owner, []).append(function)
        if function.owner and re.fullmatch(r"__\w+__", function.name):
            of_class.setdefault(function.owner, []).append(function)
    waiting = [function for function in functions if (function.owner, function.name) == START]
    if not waiting:
        raise SystemExit(f"{'.'.join(START)} is not in any module that {', '.join(ROOTS)} import")
    found: dict[tuple[str, str, str], Function] = {}
    seen: set[str] = set()
    while waiting:
        function = waiting.pop()
        if function[:3] in found:
            continue
        found[function[:3]] = function
        # A method also reaches the statements of its class: attributes and defaults.
        for name in (function.mentions | {function.owner}) - seen:
            seen.add(name)
            waiting += named.get(name, ())
            waiting += of_class.get(name, ())
    return list(found.values())


# Counting.


class Counts(NamedTuple):
    """The counts of one package; see the module's docstring."""

    lines: int
    module_code: int
    reachable_code: int


def reachable_lines(modules: Mapping[str, Module]) -> dict[str, frozenset[int]]:
    """Return the reachable lines of code of each reachable module; all code of a .pxd file counts."""
    within = reachable_modules(modules)
    lines: dict[str, set[int]] = {name: set() for name in within}
    for function in reachable_functions(modules, within):
        lines[function.module].update(function.lines)
    for name in within:
        if not name.endswith(SUFFIXES[1:]):
            continue
        lines[name].update(modules[name].code)
    return {name: frozenset(numbers) for name, numbers in lines.items()}


def count(modules: Mapping[str, Module]) -> dict[str, Counts]:
    """Return the counts of each package, by package."""
    reached = reachable_lines(modules)
    found: dict[str, Counts] = {}
    for name, module in modules.items():
        package = package_of(module.name)
        before = found.get(package, Counts(0, 0, 0))
        own = (len(module.text), len(module.code) if name in reached else 0, len(reached.get(name, ())))
        found[package] = Counts(*map(sum, zip(before, own, strict=True)))
    return found


class Changes(NamedTuple):
    """Changes in the reachable lines of code of one package: deleted, moved here from another file, and new."""

    deleted: int
    moved: int
    new: int


def changes(before: Mapping[str, Module], after: Mapping[str, Module]) -> dict[str, Changes]:
    """Return the changes of each package; deleted lines count in the package that they were in."""
    old, new = _line_texts(before), _line_texts(after)
    gone: Counter[str] = Counter()
    for name, texts in old.items():
        gone += texts - new.get(name, Counter())
    came: dict[str, Counter[str]] = {name: texts - old.get(name, Counter()) for name, texts in new.items()}
    # A line that was removed from one file and added to another has moved; each copy counts once.
    free = Counter({text: number for text, number in gone.items() if len(text) >= MIN_MOVED_LENGTH})
    result: dict[str, list[int]] = {}
    moved_in_all: Counter[str] = Counter()
    for name, texts in sorted(came.items()):
        moved = texts & free
        free -= moved
        moved_in_all += moved
        totals = result.setdefault(package_of(after[name].name), [0, 0, 0])
        totals[1] += moved.total()
        totals[2] += texts.total() - moved.total()
    for name, texts in sorted(old.items()):
        left = texts - new.get(name, Counter())
        moved = left & moved_in_all
        moved_in_all -= moved
        result.setdefault(package_of(before[name].name), [0, 0, 0])[0] += left.total() - moved.total()
    return {package: Changes(*numbers) for package, numbers in sorted(result.items()) if any(numbers)}


def _line_texts(modules: Mapping[str, Module]) -> dict[str, Counter[str]]:
    reached = reachable_lines(modules)
    return {
        name: Counter(modules[name].text[number - 1].strip() for number in numbers) for name, numbers in reached.items()
    }


def modules_at(commit: str, folder: Path) -> dict[str, Module]:
    """Return the modules of a commit, which is unpacked into a folder."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return read_modules(folder / "src")


# Output.


def print_counts(counts: Mapping[str, Counts], baseline: Mapping[str, list[int]]) -> None:
    """Print one line per package, with the recorded counts in brackets."""
    print(f"{'package':<40} {'lines':>18} {'module code':>18} {'reachable code':>18}")
    empty = Counts(0, 0, 0)
    for package in sorted({*counts, *baseline}, key=lambda name: (name not in CORE, name)):
        one, was = counts.get(package, empty), baseline.get(package, empty)
        if not one.module_code and not sum(was[1:]):
            continue
        print(f"{package:<40}" + "".join(f"{now:>10,} ({then:>6,})" for now, then in zip(one, was, strict=True)))
    core = [[*map(sum, zip(*(rows.get(name, empty) for name in CORE), strict=True))] for rows in (counts, baseline)]
    everything = [[*map(sum, zip(empty, *rows.values(), strict=True))] for rows in (counts, baseline)]
    for title, (now_of, then_of) in ((" + ".join(CORE), core), ("all that is reached", everything)):
        columns = zip(now_of, then_of, strict=True)
        cells = [f"{now:>10,} ({then:>6,})" for now, then in columns]
        # The sum of all lines would include packages of which a decision reaches almost nothing.
        print(f"{title:<40}" + "".join([" " * 19 if title.startswith("all") else cells[0], *cells[1:]]))
    print(f"In brackets: the counts in {BASELINE.name}. How each is counted: the head of benchmarks/code_lines.py.")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Count the lines that a scheduling decision can reach.")
    parser.add_argument("--against", metavar="COMMIT", help="also print what was deleted, moved and added since")
    parser.add_argument("--functions", metavar="MODULE", help="print the reachable functions of a module instead")
    parser.add_argument("--record", action="store_true", help=f"write the counts to {BASELINE.name}")
    options = parser.parse_args()
    modules = read_modules(ROOT / "src")
    if options.functions:
        name = f"{PACKAGE}.{options.functions.removeprefix(f'{PACKAGE}.')}"
        for function in sorted(reachable_functions(modules, reachable_modules(modules))):
            if function.module == name:
                print(f"{len(function.lines):>5} {'.'.join(filter(None, (function.owner, function.name)))}")
        return
    counts = count(modules)
    if options.record:
        BASELINE.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
    print_counts(counts, json.loads(BASELINE.read_text()) if BASELINE.exists() else {})
    if options.against:
        with TemporaryDirectory() as folder:
            found = changes(modules_at(options.against, Path(folder)), modules)
        print(
            f"\nreachable lines of code since {options.against}\n{'package':<22} {'deleted':>9} {'moved':>9} {'new':>9}"
        )
        for package, one in found.items():
            print(f"{package:<22} {one.deleted:>9,} {one.moved:>9,} {one.new:>9,}")
        total = [*map(sum, zip((0, 0, 0), *found.values(), strict=True))]
        print(f"{'in all':<22} {total[0]:>9,} {total[1]:>9,} {total[2]:>9,}")


if __name__ == "__main__":
    main()
