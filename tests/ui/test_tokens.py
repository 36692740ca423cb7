"""The colours: each combination of text and background is readable in both themes, also for colour-blind people."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

TOKENS = (Path(__file__).resolve().parents[2] / "src/bayplan/ui/static/tokens.css").read_text(encoding="utf-8")
Colour = npt.NDArray[np.float64]

READABLE = 4.5
PAIRS = (
    *(("ink", ground) for ground in ("bg", "panel", "hover", "select", "bad-tint", "wait-tint", "heat1")),
    *(("ink2", ground) for ground in ("bg", "panel", "hover")),
    *(("accent", ground) for ground in ("bg", "panel", "select")),
    ("on-accent", "accent"),
    *((name, f"{name}-tint") for name in ("ok", "bad", "wait")),
    ("bad", "panel"),
)
# Linear colours as seen with the three kinds of colour blindness (Machado et al., 2009, severity 1).
SIGHTS = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def themes() -> dict[str, dict[str, Colour]]:
    """Return the colours of the themes, as linear red, green and blue."""
    blocks = {"light": r":root \{(.*?)\}", "dark": r':root\[data-theme="dark"\] \{(.*?)\}'}
    found = {}
    for name, pattern in blocks.items():
        block = re.search(pattern, TOKENS, re.DOTALL)
        assert block is not None
        found[name] = {key: linear(value) for key, value in re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block.group(1))}
    return found


def linear(text: str) -> Colour:
    parts = np.array([int(text[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.asarray(np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4))


def luminance(colour: Colour) -> float:
    return float(colour @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(one: Colour, other: Colour) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(colour: Colour) -> Colour:
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    scaled = matrix @ np.clip(colour, 0, 1) / np.array([0.9505, 1.0, 1.089])
    root = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_sufficient_contrast(theme: str) -> None:
    colours = themes()[theme]
    found = {(text, ground): contrast(colours[text], colours[ground]) for text, ground in PAIRS}
    assert {pair: round(value, 2) for pair, value in found.items() if value < READABLE} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("sight", ["everybody", *SIGHTS])
def test_heat_map_steps_are_distinguishable(theme: str, sight: str) -> None:
    colours = themes()[theme]
    seen = np.eye(3) if sight == "everybody" else np.array(SIGHTS[sight])
    steps = [lab(seen @ colours[f"heat{step}"]) for step in range(5)]
    apart = [float(np.linalg.norm(one - other)) for one, other in pairwise(steps)]
    assert min(apart) > 9
    full = lab(seen @ colours["full"])
    assert min(float(np.linalg.norm(full - step)) for step in steps) > 30
