"""The CEL selectors of device classes and requests: evaluated once for each expression and device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.objects.resource import DeviceSelector
from bayplan.plugins.dynamic_resources.features import AllocationFeatures
from bayplan.plugins.dynamic_resources.pools import PoolDevice

if TYPE_CHECKING:
    from bayplan.plugins.dynamic_resources.device_environment import DeviceProgram

MAX_CACHED_PROGRAMS = 1024


class AllocationFailed(Exception):
    """A claim, class or slice is invalid, which ends the cycle. The text is upstream's. Caught in this package."""


class Selectors:
    """The device selectors (CEL expressions) of one scheduler; each is compiled once."""

    def __init__(self, features: AllocationFeatures) -> None:
        self._features = features
        self._programs: dict[str, DeviceProgram | CompileProblem] = {}

    def match(self, selectors: Sequence[DeviceSelector], device: PoolDevice, owner: str) -> bool:
        """Return whether a device meets all selectors. `owner`: the request or class that has them, for error texts.

        Raises:
            AllocationFailed: an expression can't be compiled, or fails on the device.
        """
        for number, selector in enumerate(selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            answer = device.matches.get(expression)
            if answer is None:
                answer = device.matches[expression] = self._evaluate(expression, device)
            if isinstance(answer, CompileProblem):
                raise AllocationFailed(f"{owner}: selector #{number}: CEL compile error: {answer}")
            if isinstance(answer, RunProblem):
                raise AllocationFailed(f"{owner}: selector #{number}: CEL runtime error: {answer}")
            if not answer:
                return False
        return True

    def _evaluate(self, expression: str, device: PoolDevice) -> bool | CompileProblem | RunProblem:
        program = self._programs.get(expression)
        if program is None:
            # Imported only when needed: importing CEL is slow, and most clusters have no devices.
            from bayplan.plugins.dynamic_resources.device_environment import compile_device_expression

            try:
                program = compile_device_expression(expression, list_attributes=self._features.list_attributes)
            except CompileProblem as problem:
                program = problem
            if len(self._programs) >= MAX_CACHED_PROGRAMS:
                self._programs.clear()
            self._programs[expression] = program
        if isinstance(program, CompileProblem):
            return program
        try:
            return program.matches(device.id[0], device.source)
        except RunProblem as problem:
            return problem
