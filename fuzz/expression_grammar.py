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
TIMES = ("0001-01-01T00:00:00Z", "1970-01-01T00:00:00.5Z", "2024-02-29T12:30:45+05:30", "9999-12-31T23:59:59Z")
ZONES = ("", "UTC", "Local", "+1:5", "-12:34", "+24:00", "US/Central", "Asia/Kolkata", "Nowhere", "1:x", ":")
TIME_FIELDS = ("getFullYear", "getMonth", "getDate", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes")
SPANS = ("0s", "1.5s", "-90m", "1000000h1ns")
URLS = (
    "http://h/a%2Fb?a=1;b=2&c=3+4",
    "https://u@[::1]:80/x#y",
    "http://h:abc/",
    "http://ho st/",
    "///x",
    "/é'()",
    "mailto:a@b",
    "a/b",
)
URL_PARTS = ("getScheme()", "getHost()", "getHostname()", "getPort()", "getEscapedPath()", 'getQuery()["c"][0]')
FORMATS = ("date", "datetime", "byte", "uri", "uuid", "labelValue", "dns1123Label")
FORMAT_TEXTS = (
    "2024-W01-1",
    "0000-01-01",
    "2024-01-01t00:00:00z",
    "2024-01-01T00:00:00+99:99",
    "",
    "YQ==",
    "http://h:abc",
    "a-b",
)
ESCAPES = (r"\x41", r"\u00e9", r"\U0001f600", r"\377", r"\n", r"\ud800", r"\u1_23", r"\q")
DOUBLES = ("1e6", "123456.0", "0.00001", 'double("0x1p-2")', 'double("1_0")', 'double("1e999")', "1e400", "-0.0")
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
            f'isURL("{draws.one(URLS)}")',
            f'format.{draws.one(FORMATS)}().validate("{draws.one(FORMAT_TEXTS)}").hasValue()',
            f'optional.ofNonZeroValue(duration("{draws.one(SPANS)}")).hasValue()',
            f'[duration("{draws.one(SPANS)}"), duration("{draws.one(SPANS)}")].sum() > duration("1s")',
            f"{_list(draws, deeper)}.transformMapEntry(i, v, {{v: i}}).size() > 1",
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
            f'timestamp("{draws.one(TIMES)}").{draws.one(TIME_FIELDS)}("{draws.one(ZONES)}")',
            f'duration("{draws.one(SPANS)}").getMinutes()',
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
    return draws.one(
        (
            f"string({_int(draws, deeper)})",
            f"string({_bool(draws, deeper)})",
            f"string({draws.one(DOUBLES)})",
            f"""string({draws.one(("b", ""))}"{draws.one(ESCAPES)}")""",
            f'string(timestamp("{draws.one(TIMES)}") + duration("{draws.one(SPANS)}"))',
            f'url("{draws.one(URLS)}").{draws.one(URL_PARTS)}',
        )
    )


def _list(draws: Draws, depth: int) -> str:
    deeper = depth - 1
    kind = draws.randint(0, 3 if depth else 0)
    if kind == 0:
        return f"[{', '.join(_int(draws, 0) for _ in range(draws.randint(1, 3)))}]"
    if kind == 1:
        return f"{_list(draws, deeper)}.map(i, i * 2)"
    if kind == 2:
        return f"{_list(draws, deeper)}.filter(i, i > {_int(draws, 0)})"
    return draws.one(
        (
            f"({_list(draws, deeper)} + {_list(draws, deeper)})",
            f"{_list(draws, deeper)}.{draws.one(('sort', 'reverse', 'distinct'))}()",
            f"lists.range({draws.randint(-1, 4)})",
        )
    )


def _quantity(draws: Draws, depth: int) -> str:
    if depth > 0 and draws.chance(0.3):
        return f"{_quantity(draws, depth - 1)}.{draws.one(('add', 'sub'))}({_quantity(draws, 0)})"
    amounts = ("1Gi", "1024Mi", "0.5", "10m", "1e3", "2Ei", "100")
    return draws.one((f'quantity("{draws.one(amounts)}")', 'device.capacity["gpu.example.com"].memory'))


def _version(draws: Draws) -> str:
    return draws.one(('semver("1.2.3")', 'semver("2.0.0-rc.1")', f"{GPU}.version"))
