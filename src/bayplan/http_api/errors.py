"""Errors of this API and their response bodies."""

from __future__ import annotations

from http import HTTPStatus

from bayplan.base.errors import InputError
from bayplan.http_api.contract.answer import Error, Refused


class RequestError(InputError):
    """A rejected request: an `InputError` with an HTTP status and, for a wrong method, the allowed methods."""

    def __init__(
        self,
        status: int,
        what: str,
        *,
        where: str = "",
        got: str = "",
        wanted: str = "",
        hint: str = "",
        allowed: tuple[str, ...] = (),
    ) -> None:
        self.status = status
        self.allowed = allowed
        super().__init__(what, where=where, got=got, wanted=wanted, hint=hint)


def request_error_of(problem: InputError) -> RequestError:
    """Return the error response for invalid input that a lower layer found in the request's content."""
    if isinstance(problem, RequestError):
        return problem
    return RequestError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        problem.what,
        where=problem.where,
        got=problem.got,
        wanted=problem.wanted,
        hint=problem.hint,
    )


def document_of(problem: RequestError, request_id: str) -> Error:
    """Return the body of an error response."""
    return Error(
        error=Refused(
            what=problem.what,
            where=problem.where,
            got=problem.got,
            wanted=problem.wanted,
            hint=problem.hint,
            request_id=request_id,
        )
    )
