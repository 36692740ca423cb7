"""Expressions over a device: their results, runtime errors and compile errors."""

import pytest

from bayplan.cel.parser import EXPECTED
from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.objects.resource import Device, DeviceAttribute, DeviceCapacity
from bayplan.plugins.dynamic_resources.device_environment import compile_device_expression

DRIVER = "gpu.example.com"
DEVICE = Device(
    name="d0",
    attributes={
        "model": DeviceAttribute(string_value="a100"),
        "index": DeviceAttribute(int_value=3),
        "fast": DeviceAttribute(bool_value=True),
        "ver": DeviceAttribute(version_value="1.2.3-rc.1"),
        "other.com/x": DeviceAttribute(string_value="Yy"),
    },
    capacity={"memory": DeviceCapacity(value="40Gi"), "other.com/part": DeviceCapacity(value="1500m")},
)


def evaluated(expression: str, device: Device = DEVICE, *, lists: bool = False) -> object:
    """Return the result of an expression for a device; $A stands for the driver's attributes, $C for its capacities."""
    written = expression.replace("$A", f'device.attributes["{DRIVER}"]').replace("$C", f'device.capacity["{DRIVER}"]')
    try:
        return compile_device_expression(written, list_attributes=lists)(DRIVER, device)
    except CompileProblem as problem:
        return f"compile: {problem}"
    except RunProblem as problem:
        return f"run: {problem}"


TRUE = [
    'device.driver == "gpu.example.com"',
    "!device.allowMultipleAllocations",
    '$A.model == "a100" && $A.index > 2',
    '$A["model"] == "a100"',
    '$A.model.startsWith("a") && $A.model.endsWith("00") && $A.model.contains("10")',
    '$A.model.matches("^a[0-9]+$")',
    "$A.fast",
    "$A.index in [1, 2, 3]",
    '"model" in $A && !("nope" in $A)',
    'device.attributes["other.com"].x.lowerAscii() == "yy"',
    "has($A.model) && !has($A.nope)",
    'has(device.attributes["nobody.com"].x) == false',
    '$A.?nope.orValue("x") == "x"',
    '$A[?"model"].hasValue()',
    "cel.bind(a, $A, a.fast && a.index == 3)",
    '$A.exists(name, name == "model")',
    "[1, 2, 3].all(x, x > 0) && [1, 2, 3].exists_one(x, x > 2)",
    "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]",
    '$A.model.split("1") == ["a", "00"] && $A.model.size() == 4',
    "$A.index == 3.0 && $A.index == 3u && 7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1",
    '$C.memory.compareTo(quantity("32Gi")) > 0 && $C.memory == quantity("40960Mi")',
    '$C.memory.isGreaterThan(quantity("1Gi")) && $C.memory.asInteger() == 42949672960',
    'device.capacity["other.com"].part.add(quantity("500m")) == quantity("2")',
    '$A.ver.isLessThan(semver("1.2.3")) && $A.ver.minor() == 2 && isSemver("1.2", true)',
    '$A.fast ? true : $A.nope == "x"',
    "[dyn(1), dyn(2)][0] == 1 && {'a': 1}.a == 1",
    'device.driver == """gpu.example.com""" // a comment',
]


@pytest.mark.parametrize("expression", TRUE)
def test_device_expressions_evaluate_to_true(expression: str) -> None:
    assert evaluated(expression) is True


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param('$A.index == "x"', False, id="a number is never equal to a text"),
        pytest.param('$A.nope == 1 || $A.model == "a100"', True, id="or returns the operand that evaluates"),
        pytest.param('$A.nope == 1 && $A.model == "b"', False, id="and returns the operand that is false"),
        pytest.param("[0, 1].exists(x, 1 / x == 1)", True, id="exists ignores elements that fail"),
        pytest.param("$A.nope == 1", "run: no such key: nope", id="a missing attribute"),
        pytest.param(
            'device.attributes["nobody.com"].x == 1', "run: no such key: x", id="of a domain that no device has"
        ),
        pytest.param("[1][5] == 1", "run: index out of bounds: 5", id="past the end of a list"),
        pytest.param("$A.index / 0 == 1", "run: division by zero", id="a division by zero"),
        pytest.param("9223372036854775807 + 1 == 0", "run: integer overflow", id="a sum that does not fit"),
        pytest.param("$A.model > 3", "run: no such overload", id="types that have no order"),
        pytest.param("$A.ver == '1'", "run: no such overload", id="a version compared with a text"),
        pytest.param(
            "quantity('1z').isInteger()",
            "run: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a text that is not a quantity",
        ),
        pytest.param("semver('1.2').major() == 1", "run: No Major.Minor.Patch elements found", id="no version"),
        pytest.param(
            "$A.model",
            "run: CEL result of type string could not be converted to bool: "
            "unsupported native conversion from string to 'bool'",
            id="a result that is not a boolean",
        ),
    ],
)
def test_expression_returns_its_value_or_error(expression: str, want: object) -> None:
    assert evaluated(expression) == want


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param("1", "must evaluate to bool or the unknown type, not int", id="an expression that is not a boolean"),
        pytest.param("device.foo", "1:7: undefined field 'foo'", id="a field that devices don't have"),
        pytest.param("foo", "1:1: undeclared reference to 'foo' (in container '')", id="an unknown name"),
        pytest.param("foo(1)", "1:4: undeclared reference to 'foo' (in container '')", id="an unknown function"),
        pytest.param(
            "device.driver == 1",
            "1:15: found no matching overload for '_==_' applied to '(string, int)'",
            id="types that are known not to be equal",
        ),
        pytest.param("true || 1", "1:9: expected type 'bool' but found 'int'", id="an operand that is not a boolean"),
        pytest.param("[1, 'a'].size() == 2", "1:5: expected type 'int' but found 'string'", id="a mixed list"),
        pytest.param("(1", "1:3: Syntax error: missing ')' at '<EOF>'", id="an open parenthesis"),
        pytest.param(
            "device.attributes[",
            "1:19: Syntax error: mismatched input '<EOF>' expecting " + EXPECTED.replace("'!'", "'!', '?'"),
            id="an index without an end: it may begin with a question mark",
        ),
        pytest.param("!-2", "1:1: found no matching overload for '!_' applied to '(int)'", id="not of a negative number"),
        pytest.param("if", "1:1: reserved identifier: if", id="a reserved word"),
        pytest.param(
            "int('x') == 1",
            "program instantiation failed: type conversion error from 'string' to 'int'",
            id="a constant that is not a number",
        ),
        pytest.param("'a'.matches('[')", "1:13: invalid matches argument", id="an invalid regular expression"),
        pytest.param("'a'.matches('a++')", "1:13: invalid matches argument", id="an expression of Python that Go lacks"),
        pytest.param(
            "'a'.find('(') == ''",
            "program instantiation failed: error parsing regexp: missing closing ): `(`",
            id="a constant for find that is not a regular expression",
        ),
        pytest.param("9" * 5000 + " == 1", "1:1: invalid int literal", id="a number of 5,000 digits"),
        pytest.param(
            "(" * 300 + "true" + ")" * 300,
            "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250",
            id="300 parentheses",
        ),
        pytest.param(
            "1" + "+1" * 300 + " == 1",
            "compilation failed: ERROR: <input>:-1:0: max recursion depth exceeded",
            id="300 additions",
        ),
    ],
)  # fmt: skip
def test_invalid_expression_fails_to_compile(expression: str, want: str) -> None:
    text = str(evaluated(expression))
    if want[0].isdigit():
        line, column, _ = want.split(":", 2)
        dots = "." * (int(column) - 1)
        want = f"compilation failed: ERROR: <input>:{want}\n | {expression}\n | {dots}^"
        assert line == "1"
    assert text == f"compile: {want}"


def test_empty_expression_fails_without_a_source_line() -> None:
    problem = f"ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {EXPECTED}"
    assert evaluated("") == f"compile: compilation failed: {problem}"


def test_compile_error_shows_its_line_and_column() -> None:
    assert str(evaluated('device.driver ==\n "x" && foo')).endswith(
        "ERROR: <input>:2:9: undeclared reference to 'foo' (in container '')\n |  \"x\" && foo\n | ........^"
    )


def test_multiple_compile_errors_are_reported_in_order() -> None:
    text = str(evaluated("a == b"))
    assert text.index("reference to 'a'") < text.index("reference to 'b'")


def test_attribute_lists_require_their_feature() -> None:
    device = Device(name="d", attributes={"zones": DeviceAttribute(string_values=("a", "b"))})
    assert evaluated('$A.zones.includes("a")', device, lists=True) is True
    assert evaluated('$A.zones.exists(z, z == "c")', device, lists=True) is False
    assert evaluated('$A.zones.includes("a")', device) == "run: attribute zones: unsupported attribute value"


def test_expensive_expressions_are_cancelled() -> None:
    loop = "true"
    for depth in range(7):
        loop = f"[1,2,3,4,5,6,7,8,9,10].all(x{depth}, {loop})"
    assert evaluated(loop) == "run: operation cancelled: actual cost limit exceeded"


STOPPED = "run: operation cancelled: actual cost limit exceeded"


def bound(first: str, step: str, times: int, last: str) -> str:
    """Return an expression with nested bindings, each of a value computed from the previous one, the ``@`` in `step`."""
    expression = last.replace("@", f"v{times}")
    for number in range(times, 0, -1):
        expression = f"cel.bind(v{number}, {step.replace('@', f'v{number - 1}')}, {expression})"
    return f"cel.bind(v0, {first}, {expression})"


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param(f"'{'a' * 40}!'.matches('^(a+)+$')", False, id="nested repetitions match in linear time"),
        pytest.param("'aé'.matches('^[[:alpha:]]\\\\W$')", True, id="classes are Go's"),
        pytest.param("'baaac'.findAll('a*') == ['', 'aaa', '']", True, id="so are empty matches"),
        pytest.param("'a'.matches($A.model + '(')", "run: error parsing regexp: missing closing ): `a100(`", id="errors"),
        pytest.param("'a'.find($A.model + '(') == ''", "run: Illegal regex: error parsing regexp: missing closing ): `a100(`",
                     id="errors of find"),
        pytest.param(bound("'aaaaaaaa'", "@ + @", 12, "@.findAll('(a?){900}b').size() == 0"), STOPPED, id="a costly pattern"),
        pytest.param(bound("'aaaaaaaa'", "@ + @", 15, "@.findAll('a.*b|a') == []"), STOPPED, id="a search for each letter"),
        pytest.param("'aaa'.findAll('a', 2) == ['a', 'a'] && 'aaa'.findAll('a', 0) == []", True, id="as many as wanted"),
        pytest.param(bound("[1, 1]", "@ + @", 40, "@ == @"), STOPPED, id="a list that doubles"),
        pytest.param(bound("[1, 1]", "[@, @]", 60, "@ == @"), STOPPED, id="a list of lists of lists"),
        pytest.param(bound("'aaaaaaaa'", "@.replace('', 'aaaaaaaa')", 12, "@ == ''"), STOPPED, id="a text that grows"),
        pytest.param("lists.range(100000).distinct() == []", STOPPED, id="every element against every other"),
        pytest.param("lists.range(1000000).all(x, x >= 0)", STOPPED, id="a long range"),
        pytest.param("&&".join(["true"] * 2500), True, id="2,500 conditions"),
        pytest.param("!" * 5001 + "true", False, id="5,001 negations"),
        pytest.param(f"int($A.model.replace('a', '{'9' * 5000}')) == 1",
                     "run: type conversion error from 'string' to 'int'", id="a text of 5,000 digits is not an int"),
    ],
)  # fmt: skip
def test_cost_and_size_of_expressions_are_limited(expression: str, want: object) -> None:
    assert evaluated(expression) == want


def test_short_circuited_macros_are_charged_only_for_completed_steps() -> None:
    some = "[1,2,3,4,5,6,7,8,9,10].exists(x, lists.range(1000).all(y, y >= 0))"
    assert evaluated(" && ".join([some] * 300)) == STOPPED
