"""Webhook responses for synchronous code: if a response is missing, the caller makes the call and retries the request.

Writes are synchronous, so that nothing changes between reading an object and writing it. A write that needs a webhook's
response raises `CallsNeededError` before it stores anything. Its caller makes the calls while the event loop keeps
running, and retries the write, which then finds the responses. `Session` replays time, uids, names and addresses, so
that each attempt sends equal requests. If the cluster changes between attempts, the next attempt makes different calls,
as upstream does after a conflict.
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
"""Maximum number of attempts of a request that needs webhooks.

Unless the cluster changes, each attempt gets further.
"""
MAX_BACKGROUND_ANSWERS = 1024
"""Maximum number of responses stored for retries of controllers."""
_encode = msgspec.json.Encoder(order="deterministic").encode
_DIFFERS = ("name", "uid", "creationTimestamp", "resourceVersion", "managedFields")
"""Metadata fields that differ between a controller's attempts, such as generated names; ignored when a response is looked up."""


class CallProblem(Exception):
    """A webhook call failed; the text is upstream's message."""


class Call(msgspec.Struct, frozen=True):
    """One webhook call.

    Attributes:
        name: distinguishes the call from others with the same body.
        client: the ``clientConfig`` of the webhook.
        body: the body of the request, without its uid.
        uid_path: the path of the uid in the body.
        timeout_s: the time limit of the call in seconds.
    """

    name: str
    client: Document
    body: Document
    uid_path: tuple[str, ...]
    timeout_s: int

    def digest(self, *, loosely: bool = False) -> bytes:
        """Return a digest that is equal for equal calls.

        Args:
            loosely: whether to ignore the metadata that a controller generates in each attempt.
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
    """The result of a webhook call.

    Attributes:
        body: the body of the response, empty if there is none.
        uid: the uid in the request.
        sent: the body of the request.
        problem: upstream's message if the call failed, else empty.
    """

    body: Document
    uid: str
    sent: Document
    problem: str = ""


class CallsNeededError(Exception):
    """A request needs responses that are missing. It has not stored anything.

    Attributes:
        calls: the calls to make before the next attempt.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = tuple(calls)
        super().__init__(f"{len(self.calls)} calls are needed")


def awaits_answers(needed: CallsNeededError) -> ApiError:
    """Return the error 503 for a client that cannot wait for webhooks."""
    names = ", ".join(call.name for call in needed.calls)
    return ApiError(503, f"the request waits for admission webhooks: {names}")


class Caller(Protocol):
    """Makes webhook calls in the background."""

    def send(self, call: Call, endpoint: Endpoint) -> None:
        """Make a call in the background and pass the response to `Outgoing.store`."""


class Session:
    """The state that all attempts of one request share: the responses so far, and generated values.

    Args:
        seed: the seed of the random stream.
        second: the time of all attempts, in seconds since 1970.
        uids: the uids to assign, in order.

    Attributes:
        answers: the responses so far, by the digest of the call.
    """

    __slots__ = ("answers", "second", "seed", "uids")

    def __init__(self, seed: int, second: float, uids: Sequence[str]) -> None:
        self.seed = seed
        self.second = second
        self.uids = tuple(uids)
        self.answers: dict[bytes, Answer] = {}


class Draws(Protocol):
    """A source of random choices, uids and times."""

    @contextmanager
    def drawing(self, stream: random.Random, second: float, uids: Sequence[str]) -> Iterator[None]:
        """Within the context, take random choices, the time and uids from these arguments."""


class Outgoing:
    """Decides which webhook calls are allowed, and finds their responses.

    Args:
        targets: the allowed targets; none by default.

    Attributes:
        caller: makes calls in the background; None without a server.
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
        """Return whether the target of a ``clientConfig`` may be called."""
        return self._targets.find(client) is not None

    def endpoint(self, call: Call) -> Endpoint | None:
        """Return the endpoint of a call, or None if the call is not allowed."""
        return self._targets.find(call.client)

    @contextmanager
    def attempt(self, session: Session, draws: Draws) -> Iterator[None]:
        """Within the context, run one attempt of a request, with the responses and generated values of its session."""
        before, self._session = self._session, session
        try:
            with draws.drawing(random.Random(session.seed), session.second, session.uids):
                yield
        finally:
            self._session = before

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        """Return the responses to these calls, in order.

        Raises:
            CallsNeededError: at least one call has no response yet.
            CallProblem: there is no server to make calls.
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
            self._start_calls(missing)
        raise CallsNeededError(missing)

    def _start_calls(self, calls: Sequence[Call]) -> None:
        """Start the allowed calls that are not in progress yet.

        Raises:
            CallProblem: there is no server to make calls.
        """
        if self.caller is None:
            raise CallProblem("failed to call webhook: no server is running")
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
