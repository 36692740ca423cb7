"""Webhook responses for synchronous code: missing responses are fetched, and the request is retried.

Writes are synchronous, so that nothing changes between reading an object and writing it. A write that needs an external
response raises `CallsNeededError` before it stores anything; its caller makes the calls while the event loop keeps running, and
retries the write, which then finds the responses. `Session` replays time, uids, names and addresses, so that the second attempt
sends the same requests; if the cluster has changed in between, it sends new ones, as upstream does after a conflict.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import msgspec

from bayplan.apiserver.admission.targets import Endpoint, Targets
from bayplan.apiserver.model.errors import ApiError
from bayplan.base.plain_data import Document, part

MAX_ATTEMPTS = 64
"""Maximum number of attempts of a request that needs responses; unless the cluster changes, each attempt gets at least one more."""
MAX_BACKGROUND_ANSWERS = 1024
"""Maximum number of stored responses for controllers."""
_encode = msgspec.json.Encoder(order="deterministic").encode
_DIFFERS = ("name", "uid", "creationTimestamp", "resourceVersion", "managedFields")
"""Fields that differ between attempts of a controller, because it generates new names: all attempts share one response."""


class CallProblem(Exception):
    """A call failed; the text is upstream's message."""


class Call(msgspec.Struct, frozen=True):
    """One call.

    Attributes:
        name: distinguishes it from other calls about the same object.
        client: ``clientConfig`` of a webhook or of a conversion.
        body: the body of the request, without uid.
        uid_path: the path of the uid in the body.
        timeout_s: the time limit for the complete response.
    """

    name: str
    client: Document
    body: Document
    uid_path: tuple[str, ...]
    timeout_s: int

    def digest(self, *, loosely: bool = False) -> bytes:
        """Return a digest that is equal for calls with the same content.

        Args:
            loosely: whether to ignore the fields that a controller generates in each attempt.
        """
        body: object = _outline(self.body) if loosely else self.body
        return hashlib.sha256(_encode([self.name, self.client, body])).digest()


def _outline(review: Document) -> Document:
    request = dict(part(review, "request"))
    new = request.get("object")
    if isinstance(new, dict):
        metadata = {name: value for name, value in part(new, "metadata").items() if name not in _DIFFERS}
        request["object"] = {**new, "metadata": metadata}
        if request.get("operation") == "CREATE":
            request.pop("name", None)
    return {**review, "request": request}


class Answer(NamedTuple):
    """The result of a call.

    Attributes:
        body: the body of the response.
        uid: the uid of the request.
        sent: the body of the request.
        problem: why there is no response, in upstream's words.
    """

    body: Document
    uid: str
    sent: Document
    problem: str = ""


class CallsNeededError(Exception):
    """Responses are missing. Nothing has been stored."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = tuple(calls)
        super().__init__(f"{len(self.calls)} calls are needed")


def awaits_answers(needed: CallsNeededError) -> ApiError:
    """Return the error for a client that cannot wait: its next attempt finds the responses."""
    names = ", ".join(call.name for call in needed.calls)
    return ApiError(503, f"the request waits for admission webhooks: {names}")


class Caller(Protocol):
    """Makes calls."""

    def send(self, call: Call, endpoint: Endpoint) -> None:
        """Make a call in the background and pass the response to `Outgoing.store`."""


class Session:
    """The attempts of one request: the responses so far, and the generated values that all attempts share.

    Args:
        seed: the seed of the generated values.
        second: seconds since 1970, the same in all attempts.
    """

    __slots__ = ("answers", "second", "seed", "uids")

    def __init__(self, seed: int, second: float, uids: Sequence[str]) -> None:
        self.seed = seed
        self.second = second
        self.uids = tuple(uids)
        self.answers: dict[bytes, Answer] = {}


class Draws(Protocol):
    """Source of uids, names and times."""

    @contextmanager
    def drawing(self, stream: random.Random, second: float, uids: Sequence[str]) -> Iterator[None]:
        """Within the context, draw uids, names and times from the random stream of this request."""


class Outgoing:
    """Knows which calls are allowed, and finds responses.

    Args:
        targets: the allowed targets; none by default.
    """

    def __init__(self, targets: Targets | None = None) -> None:
        self._targets = targets if targets is not None else Targets()
        self._session: Session | None = None
        self._background: dict[bytes, Answer] = {}
        self._under_way: set[bytes] = set()
        self.caller: Caller | None = None

    @property
    def is_on(self) -> bool:
        """Whether any call is allowed."""
        return bool(self._targets)

    def is_allowed(self, client: Document) -> bool:
        """Return whether the target of a client configuration may be called."""
        return self._targets.find(client) is not None

    def endpoint(self, call: Call) -> Endpoint | None:
        """Return the address of a call, or None if the call is not allowed."""
        return self._targets.find(call.client)

    @contextmanager
    def attempt(self, session: Session, draws: Draws) -> Iterator[None]:
        """Run one attempt of a request with the responses so far."""
        before, self._session = self._session, session
        try:
            with draws.drawing(random.Random(session.seed), session.second, session.uids):
                yield
        finally:
            self._session = before

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        """Return the responses to some calls.

        Raises:
            CallsNeededError: some have no response yet.
            CallProblem: calls are not possible.
        """
        if not calls:
            return []
        if self._session is not None:
            known: Mapping[bytes, Answer] = self._session.answers
            digests = [call.digest() for call in calls]
        else:
            known, digests = self._background, [call.digest(loosely=True) for call in calls]
        missing = [call for call, digest in zip(calls, digests, strict=True) if digest not in known]
        if not missing:
            found = [known[digest] for digest in digests]
            if self._session is None:
                for digest in digests:
                    self._background.pop(digest, None)
            return found
        if self._session is None:
            self._ask_in_background(missing)
        raise CallsNeededError(missing)

    def _ask_in_background(self, calls: Sequence[Call]) -> None:
        """Make calls in the background; the caller retries later."""
        if self.caller is None:
            raise CallProblem("failed to call webhook: there is no server that could")
        for call in calls:
            digest, endpoint = call.digest(loosely=True), self.endpoint(call)
            if endpoint is not None and digest not in self._under_way:
                self._under_way.add(digest)
                self.caller.send(call, endpoint)

    def store(self, call: Call, answer: Answer) -> None:
        """Store a response for the next attempt of a controller."""
        digest = call.digest(loosely=True)
        self._under_way.discard(digest)
        if len(self._background) >= MAX_BACKGROUND_ANSWERS:
            self._background.pop(next(iter(self._background)))
        self._background[digest] = answer
