"""Requests of a scheduler in this process, answered without a connection."""

from __future__ import annotations

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.messages import Request, Response, parse_query
from bayplan.client.requests import ApiRequest, ApiResponse


def answer_at_once(api: Api, request: ApiRequest, *, user_agent: str, user: str = "admin") -> ApiResponse:
    """Return what an API answers to a request that waits for nothing (all but watches); status 500 if it does wait.

    Args:
        api: that answers.
        request: of a client.
        user_agent: names the owner of fields that are written.
        user: that asks.
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
