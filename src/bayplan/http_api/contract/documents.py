"""Responses to requests that write documents."""

from __future__ import annotations

from typing import Literal

from bayplan.http_api.contract.answer import Answer, KubernetesDocument


class AppliedProblem(Answer, frozen=True, kw_only=True):
    """An error that the API reported in a document."""

    line: int
    path: str
    message: str


class AppliedItem(Answer, frozen=True, kw_only=True):
    """The outcome of one document.

    Attributes:
        index: the position of the document in the text, from 0.
        line: the line on which the document starts.
        path: the path of the object in the Kubernetes API, or "".
        action: created, replaced or refused.
        message: why the document was refused.
    """

    index: int
    line: int
    kind: str
    namespace: str
    name: str
    path: str
    problems: list[AppliedProblem]
    action: Literal["created", "replaced", "refused"]
    message: str


class Applied(Answer, frozen=True, kw_only=True):
    """The outcomes of the documents in a text. Replaced objects count as created."""

    items: list[AppliedItem]
    created: int
    refused: int


class Imported(Answer, frozen=True, kw_only=True):
    """The result of an import.

    Attributes:
        loaded: the number of loaded objects, by kind.
        replaced: the number of existing objects that were replaced.
        unknown_fields: fields that the Kubernetes release does not have, by file, line and object.
        total: the number of loaded objects.
    """

    loaded: dict[str, int]
    replaced: int
    unknown_fields: dict[str, list[str]]
    total: int


class Exported(Answer, frozen=True, kw_only=True, rename={"api_version": "apiVersion"}):
    """All objects except events, as a List of Kubernetes documents, with the scheduler's configuration as text."""

    api_version: str
    kind: str
    configuration: str
    items: list[KubernetesDocument]
