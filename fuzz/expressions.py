"""CEL expressions that select devices, for classes and requests; some have mistakes."""

from __future__ import annotations

from bayplan.conformance.cases import Json
from fuzz.draws import Draws
from fuzz.expression_grammar import random_expression

GPU = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'

COMMON = (
    "true",
    "false",
    'device.driver == "gpu.example.com"',
    'device.driver in ["gpu.example.com", "nic.example.com"]',
    'device.driver.startsWith("gpu")',
    'device.driver != "nic.example.com" && "gpu.example.com" in device.attributes',
    '"gpu.example.com" in device.attributes && "model" in device.attributes["gpu.example.com"]',
    'device.driver == "gpu.example.com" && has(device.attributes["gpu.example.com"].fast)',
    f'device.driver != "gpu.example.com" || !has({GPU}.index) || {GPU}.index > 1',
    f'has({GPU}.model) && {GPU}.model in ["a100", "h100"]',
    f'has({GPU}.model) ? {GPU}.model == "t4" : true',
    f"[1, 2, 3].exists(i, has({GPU}.index) && {GPU}.index == i)",
    f"!has({GPU}.fast) || {GPU}.fast",
    f'has({MEMORY}) && {MEMORY}.compareTo(quantity("16Gi")) >= 0',
    f'has({MEMORY}) && {MEMORY}.isLessThan(quantity("32Gi"))',
    f'has({GPU}.version) && {GPU}.version.isGreaterThan(semver("1.0.0"))',
    f"has({GPU}.version) && {GPU}.version.major() >= 1",
    f'has({GPU}.model) && {GPU}.model.matches("^[at][0-9]+$")',
    f"has({GPU}.model) && size({GPU}.model) == 2",
    f'cel.bind(m, {GPU}, has(m.model) && m.model == "a100")',
    'device.?attributes["gpu.example.com"].?fast.orValue(false)',
    f"{GPU}.?index.orValue(7) < 3",
    'has(device.attributes["shared.example.com"].numa) && device.attributes["shared.example.com"].numa == 0',
    "device.allowMultipleAllocations == true",
    "!has(device.allowMultipleAllocations) || !device.allowMultipleAllocations",
    f"has({GPU}.index) && {GPU}.index % 2 == 0",
    f'has({GPU}.model) && {GPU}.model.lowerAscii() == "t4"',
    'quantity("1Gi").compareTo(quantity("1024Mi")) == 0',
    "device.attributes.exists(d, d.startsWith('gpu'))",
)

RISKY = (
    f'{GPU}.model == "a100"',
    f"{GPU}.index >= 1",
    f"{GPU}.fast",
    f"{GPU}.nothere == 1",
    f'{GPU}.index == "x"',
    f'{MEMORY}.compareTo(quantity("16Gi")) > 0',
    f'{GPU}.model == "a100" || {GPU}.index == 0',
    f"{GPU}.index / 0 == 1",
    'device.attributes["unknown.example.com"].x == 1',
    f"{GPU}.model < 3",
)

BROKEN = ("device.attributes[", "device.nothere", "1 + 1", "device.driver == 3", "")


def selectors(draws: Draws) -> list[Json]:
    """Return the selectors of a class or a request."""
    return [{"cel": {"expression": _expression(draws)}} for _ in range(draws.one((1, 1, 1, 2)))]


def _expression(draws: Draws) -> str:
    if draws.has("odd", 0.02):
        return draws.one(BROKEN)
    if draws.chance(0.08):
        return draws.one(RISKY)
    if draws.chance(0.1):
        return random_expression(draws)
    return draws.one(COMMON)
