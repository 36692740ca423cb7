"""Random CEL expressions about a device, by type: the whole language and all libraries that the engine supports.

Most of them evaluate. Some fail because a device lacks a value, or on a division by zero or an overflow; a few can't be
compiled.
"""

from __future__ import annotations

from fuzz.draws import Draws

GPU = 'device.attributes["gpu.example.com"]'
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
TEXT_CALLS = (
    *("lowerAscii()", "upperAscii()", "trim()", "charAt(0)", "substring(1)", "substring(0,2)", 'find("[0-9]+")'),
    *('replace("a","b")', 'replace("0","1",1)', 'split(",").join("-")'),
)
TEXT_TESTS = ("startsWith", "endsWith", "contains", "matches")
TEXT_ARGUMENTS = ('"a"', '"g"', '"[0-9]"', '"100"')
LIST_TESTS = ("i > 0", "i == 1", "i / 0 == 1", f"i == {GPU}.index")


def random_expression(draws: Draws) -> str:
    """Return an expression of type bool."""
    return _bool(draws, draws.randint(1, 3))


def _bool(draws: Draws, depth: int) -> str:
    deeper = depth - 1
    kind = draws.randint(0, 12 if depth else 2)
    if kind == 0:
        return draws.one(("true", "false", f"{GPU}.fast", f"{GPU}.nope == 1"))
    if kind == 1:
        return f"{_int(draws, 0)} {draws.one(COMPARISONS)} {_int(draws, 0)}"
    if kind == 2:
        return draws.one((f"has({GPU}.model)", f"has({GPU}.nope)", f'"model" in {GPU}', f"{GPU}.?nope.hasValue()"))
    if kind in (3, 4):
        return f"({_bool(draws, deeper)} {draws.one(('&&', '||'))} {_bool(draws, deeper)})"
    if kind == 5:
        return f"!({_bool(draws, deeper)})"
    if kind == 6:
        return f"{_int(draws, deeper)} {draws.one(COMPARISONS)} {_int(draws, deeper)}"
    if kind == 7:
        return f"{_text(draws, deeper)} {draws.one(COMPARISONS)} {_text(draws, deeper)}"
    if kind == 8:
        return f"{_text(draws, deeper)}.{draws.one(TEXT_TESTS)}({draws.one(TEXT_ARGUMENTS)})"
    if kind == 9:
        macro, test = draws.one(("exists", "all", "exists_one")), draws.one(LIST_TESTS)
        return f"{_list(draws, deeper)}.{macro}(i, {test})"
    if kind == 10:
        return f"{_quantity(draws, deeper)}.{draws.one(('isGreaterThan', 'isLessThan'))}({_quantity(draws, deeper)})"
    if kind == 11:
        return f"({_bool(draws, deeper)} ? {_bool(draws, deeper)} : {_bool(draws, deeper)})"
    return draws.one(
        (
            f"{_int(draws, deeper)} in {_list(draws, deeper)}",
            f"{_version(draws)}.isGreaterThan({_version(draws)})",
            f"isQuantity({_text(draws, 0)})",
            f"isSemver({_text(draws, 0)})",
            f"{_list(draws, deeper)}.isSorted()",
            f"dyn({_int(draws, 0)}) == {_text(draws, 0)}",
            f"cel.bind(x, {_int(draws, deeper)}, x > 0)",
            f"sets.contains({_list(draws, 0)},{_list(draws, 0)})",
        )
    )


def _int(draws: Draws, depth: int) -> str:
    deeper = depth - 1
    kind = draws.randint(0, 6 if depth else 2)
    if kind == 0:
        return str(draws.randint(-5, 9))
    if kind == 1:
        return draws.one((f"{GPU}.index", f"{GPU}.?index.orValue(3)"))
    if kind == 2:
        return draws.one(("0", "1", "9223372036854775807", "-9223372036854775808"))
    if kind == 3:
        return f"({_int(draws, deeper)} {draws.one(tuple('+-*/%'))} {_int(draws, deeper)})"
    if kind == 4:
        return draws.one((f"size({_text(draws, deeper)})", f"{_list(draws, deeper)}.size()"))
    if kind == 5:
        return f"({_bool(draws, deeper)} ? {_int(draws, deeper)} : {_int(draws, deeper)})"
    return draws.one(
        (
            f"{_list(draws, deeper)}[{_int(draws, 0)}]",
            f"{_version(draws)}.major()",
            f"{_text(draws, deeper)}.indexOf({_text(draws, 0)})",
            f"int({_text(draws, 0)})",
            f"{_quantity(draws, deeper)}.compareTo({_quantity(draws, 0)})",
            f"{_list(draws, deeper)}.{draws.one(('sum', 'max', 'min'))}()",
        )
    )


def _text(draws: Draws, depth: int) -> str:
    deeper = depth - 1
    kind = draws.randint(0, 4 if depth else 1)
    if kind == 0:
        return draws.one(('"a100"', '"t4"', '""', '"A-b_c"', '"é"', "'x,y,z'"))
    if kind == 1:
        return draws.one((f"{GPU}.model", "device.driver"))
    if kind == 2:
        return f"({_text(draws, deeper)} + {_text(draws, deeper)})"
    if kind == 3:
        return f"{_text(draws, deeper)}.{draws.one(TEXT_CALLS)}"
    return draws.one((f"string({_int(draws, deeper)})", f"string({_bool(draws, deeper)})"))


def _list(draws: Draws, depth: int) -> str:
    deeper = depth - 1
    kind = draws.randint(0, 3 if depth else 0)
    if kind == 0:
        return f"[{', '.join(_int(draws, 0) for _ in range(draws.randint(1, 3)))}]"
    if kind == 1:
        return f"{_list(draws, deeper)}.map(i, i * 2)"
    if kind == 2:
        return f"{_list(draws, deeper)}.filter(i, i > {_int(draws, 0)})"
    return f"({_list(draws, deeper)} + {_list(draws, deeper)})"


def _quantity(draws: Draws, depth: int) -> str:
    if depth > 0 and draws.chance(0.3):
        return f"{_quantity(draws, depth - 1)}.{draws.one(('add', 'sub'))}({_quantity(draws, 0)})"
    amounts = ("1Gi", "1024Mi", "0.5", "10m", "1e3", "2Ei", "100")
    return draws.one((f'quantity("{draws.one(amounts)}")', 'device.capacity["gpu.example.com"].memory'))


def _version(draws: Draws) -> str:
    return draws.one(('semver("1.2.3")', 'semver("2.0.0-rc.1")', f"{GPU}.version"))
