"""Requests of a scheduler in the same process, handled without a connection."""

from __future__ import annotations

from bayplan.apiserver.model.users import ADMIN, User
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.messages import Request, Response, parse_query
from bayplan.client.requests import ApiRequest, ApiResponse


def answer_at_once(api: Api, request: ApiRequest, *, user_agent: str, user: User = ADMIN) -> ApiResponse:
    """Return the response to a request that need not wait. A watch, or a request that has to wait, gets status 500.

    Args:
        api: the API that handles the request.
        request: the request of a client.
        user_agent: the user agent, from which the name of the field manager is taken.
        user: the user that makes the request.
    """
    headers = {"content-type": request.content_type, "user-agent": user_agent, "accept": "application/json"}
    query = parse_query(request.query)
    answering = api.handle(Request(request.method, request.path, query, headers, request.body, user, waits=False))
    try:
        answering.send(None)
    except StopIteration as ended:
        answer = ended.value
        if isinstance(answer, Response):
            return ApiResponse(answer.status, answer.body)
    answering.close()
    return ApiResponse(500, b"the API did not answer at once")
