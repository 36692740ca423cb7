"""Dispatch of recorded cases: one function per kind, imported with the first case of that kind. Compares nothing.

To answer another kind, write the function and add its line to `ANSWERERS`. It takes the case as decoded JSON and
returns the answer in the recorded format, with the ``id`` of the case. The answer must consist of JSON values only (no
NumPy numbers). The function may raise: an exception is reported as a failure to answer, which is always a difference.
"""

import importlib
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from bayplan.conformance.cases import JsonObject, RecordedCase

ANSWERERS: dict[str, tuple[str, str]] = {
    "cycles": ("bayplan.conformance.cycles", "answer_cycle_case"),
    "sampled": ("bayplan.conformance.sampled", "answer_sampled_case"),
    "extenders": ("bayplan.conformance.extenders", "answer_extender_case"),
    "queue": ("bayplan.conformance.queue", "answer_queue_case"),
    "config": ("bayplan.conformance.config", "answer_config_case"),
    "classic": ("bayplan.conformance.classic", "answer_classic_case"),
    "classic-queue": ("bayplan.conformance.classic_queue", "answer_classic_queue_case"),
    "hints": ("bayplan.conformance.hints", "answer_hint_case"),
    "api": ("bayplan.conformance.api", "answer_api_case"),
    "annotations": ("bayplan.conformance.annotations", "answer_annotation_case"),
    "e2e": ("bayplan.conformance.e2e", "answer_e2e_case"),
}
"""The module and the function that answer each kind of case."""

Answerer = Callable[[JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class Answer:
    """Bayplan's answer to a case.

    Attributes:
        body: the answer in the recorded format, after a round trip through JSON, so that comparisons use the written
            form.
        failure: why there is no answer; "" if there is one. A failed answer agrees with nothing, not even with a
            recorded error: that error is the scheduler's verdict, the failure is a defect of Bayplan.
    """

    body: JsonObject
    failure: str = ""


def answer(case: RecordedCase) -> Answer:
    """Return the answer to a recorded case. An exception because of the case or of the engine becomes a failure."""
    try:
        answerer = _answerer(case.kind)
        if answerer is None:
            return _failed(case, f"this version of Bayplan can't answer {case.kind} cases")
        body = msgspec.json.decode(msgspec.json.encode(answerer(case.case)))
    except Exception as error:  # A defect anywhere in the engine is a differing answer, not the end of the run.
        return _failed(case, _describe(error))
    if not isinstance(body, dict) or body.get("id") != case.id:
        return _failed(case, "the answer is not an object with the id of the case")
    return Answer(body)


@cache
def _answerer(kind: str) -> Answerer | None:
    if kind not in ANSWERERS:
        return None
    module_name, function_name = ANSWERERS[kind]
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name:
            return None
        raise
    answerer: Answerer = getattr(module, function_name)
    return answerer


def _failed(case: RecordedCase, reason: str) -> Answer:
    # The key is "failure", not "error": `comparer` treats an error as an answer if the recording has one, too.
    return Answer({"id": case.id, "failure": reason}, reason)


def _describe(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
