"""Hostile regular expressions and CEL expressions, and the schemas and claims that contain them."""

from __future__ import annotations

from tests.hostile.scenario import (
    CORE,
    DEFINITIONS,
    WIDGETS,
    Draws,
    Plain,
    Scenario,
    definition,
    delete,
    named,
    pod,
    post,
    widget,
)

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
DRIVER = "gpu.example.com"
PATTERNS = (
    "^(a+)+$", "(a|aa)+$", "(a|a?)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y", "(.*a){20}", "(a?){900}b", "[ab]*a[ab]{900}c",
    "(.*)(.*)(.*)(.*)(.*)[^a]$", r"(\pL{100}){9}", r"^(\w+\s?)*$", "((a{1,20}){1,20}){1,2}$", "(", "(?=a)", "a++", "[[:alpha:]",
    "(?i)" + "a?" * 400 + "a" * 400, "a{1000}{1000}", "|" * 5000, "(" * 999 + ")" * 999, "[" * 3000, r"\Q" * 3000,
)  # fmt: skip


def expression(draws: Draws) -> str:
    """Return a CEL expression of at most 10 KiB that takes long, nests deeply, or produces an ever larger value."""
    size = draws.size(9_000)
    doubling = draws.whole(5, 60)
    runs = (
        f"'{'a' * draws.whole(20, 60)}!'.matches('{draws.text('^(a+)+$', '(a|aa)+$', '(a?){900}b')}')",
        "!" * size + "true",
        "&&".join(["true"] * (size // 6 + 1)),
        bound("[1, 1]", draws.text("@ + @", "[@, @]", "@.map(x, @)"), doubling, "@ == @"),
        bound(
            "'aaaaaaaa'",
            draws.text("@ + @", "@.replace('', 'aaaaaaaa')"),
            doubling,
            draws.text("@ == @", "@.findAll('a.*b|a') == []", "@.split('') == []", "@.matches('(a?){900}b')"),
        ),
        "lists.range(1000000)."
        + draws.text("all(x, x >= 0)", "distinct() == []", "sum() == 1", "map(x, [x, x]) == []"),
        "lists.range(1000).all(x, lists.range(1000).all(y, lists.range(1000).all(z, x + y + z >= 0)))",
        f"'{'a' * size}'.{draws.text('matches', 'find', 'findAll')}('{draws.text('(a?){900}b', 'a.*b|a', '(a|aa)+$')}') != dyn(1)",
    )
    refused = (
        "(" * (size // 2) + "true" + ")" * (size // 2),
        "-" * size + "1 == 1",
        "+".join(["1"] * (size // 2 + 1)) + " == 1",
        "device" + ".a" * (size // 2) + " == 1",
        "[" * (size // 2) + "]" * (size // 2) + " == []",
        "true ? " * (size // 8) + "true" + " : false" * (size // 8),
        draws.text("int", "uint", "double", "quantity", "semver") + f"('{'9' * size}') == 1",
        "9" * size + " == 1",
        f"quantity('1e{'9' * draws.whole(1, 20)}').isGreaterThan(quantity('1'))",
        "'" + "\\" * size,
        "[1].all(a, " * (size // 11) + "true" + ")" * (size // 11),
    )
    return draws.text(*(runs if draws.whole(0, 9) < 7 else refused))


def bound(first: str, step: str, times: int, last: str) -> str:
    """Return an expression that binds `times` values, each computed from the previous one, the ``@`` in `step`."""
    made = last.replace("@", f"v{times}")
    for number in range(times, 0, -1):
        made = f"cel.bind(v{number}, {step.replace('@', f'v{number - 1}')}, {made})"
    return f"cel.bind(v0, {first}, {made})"


def device_selectors(draws: Draws) -> Scenario:
    """Return the requests for a claim with selectors that the scheduler evaluates on a device."""
    selectors: list[Plain] = [{"cel": {"expression": expression(draws)}} for _ in range(draws.one(1, 1, 1, 3))]  # type: ignore[call-overload]
    request: Plain = {"name": "r", "exactly": {"deviceClassName": "hostile", "selectors": selectors}}
    spec: Plain = {"devices": {"requests": [request]}}
    claims = [{"name": "c", "resourceClaimName": "hostile"}]
    return [
        post(CLAIMS, named("ResourceClaim", "resource.k8s.io/v1", spec=spec)),
        post(f"{CORE}/pods", pod(resourceClaims=claims)),
        delete(f"{CORE}/pods/hostile"),
        delete(f"{CLAIMS}/hostile"),
    ]


def schema_patterns(draws: Draws) -> Scenario:
    """Return the requests for a custom resource whose patterns are slow to match with its strings."""
    pattern = draws.text(*PATTERNS)
    count = draws.size(300)
    text = draws.text("a", "ab", "x", "é", "A ") * draws.size(200_000 // count * 4) + "!"
    properties: Plain = {f"p{number}": {"type": "string", "pattern": f"{number}|{pattern}"} for number in range(count)}
    schema: Plain = {"type": "object", "properties": properties}
    if draws.one(True, False):
        alternatives: list[Plain] = [{"pattern": f"{number}|{pattern}"} for number in range(count)]
        schema = {
            "type": "object",
            "properties": {"p0": {"type": "string", draws.text("anyOf", "allOf", "oneOf"): alternatives}},
        }
    return widgets(schema, {f"p{number}": text for number in range(count)})


def schema_rules(draws: Draws) -> Scenario:
    """Return the requests for enums, alternatives, required names or defaults that must be checked for many values."""
    count = draws.size(20_000)
    items: Plain = draws.one(  # type: ignore[assignment]
        {"type": "string", "enum": [f"v{number}" for number in range(count)]},
        {"type": "object", "required": [f"v{number}" for number in range(count)]},
        {"type": "object", "properties": {f"v{number}": {"type": "string", "default": "x"} for number in range(count)}},
        {"type": "string", "anyOf": [{"maxLength": number % 7} for number in range(count)]},
        {"type": "string", "oneOf": [{"minLength": number % 7} for number in range(count)]},
        {
            "type": "string",
            "format": draws.text("uuid", "email", "duration", "uri", "date-time", "ipv6", "hostname", "byte"),
        },
    )
    schema: Plain = {"type": "object", "properties": {"list": {"type": "array", "items": items}}}
    if draws.one(True, False):
        schema["properties"]["list"]["x-kubernetes-list-type"] = "set"  # type: ignore[index]
    value = {} if items["type"] == "object" else draws.text("v0", "x", "1" * 100, "a." * 100, "é" * 50)
    return widgets(schema, {"list": [value] * draws.size(20_000)})


def deep_schemas(draws: Draws) -> Scenario:
    """Return the requests for a schema and a value that nest deeply."""
    depth = draws.size(draws.whole(50, 3_000))
    inside = draws.text("properties", "additionalProperties", "items", "not")
    head = {"properties": '{"type":"object","properties":{"a":', "items": '{"type":"array","items":'}
    opening = head.get(inside, f'{{"type":"object","{inside}":')
    closing = "}}" if inside == "properties" else "}"
    schema = opening * depth + '{"x-kubernetes-preserve-unknown-fields":true,"type":"object"}' + closing * depth
    value = ("[" if inside == "items" else '{"a":') * depth + "{}" + ("]" if inside == "items" else "}") * depth
    made = widgets({"mark": 1}, {"mark": 1})
    return [
        request._replace(body=request.body.replace(b'{"mark":1}', (schema if number == 0 else value).encode()))
        for number, request in enumerate(made)
    ]


def widgets(schema: Plain, spec: object) -> Scenario:
    """Return the requests that define widgets, create one, and delete it and the definition."""
    return [
        post(DEFINITIONS, definition(schema)),
        post(WIDGETS, widget(spec)),
        delete(f"{WIDGETS}/hostile"),
        delete(f"{DEFINITIONS}/widgets.example.com"),
    ]
