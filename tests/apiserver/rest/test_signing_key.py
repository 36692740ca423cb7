"""The key of service account tokens: made in a thread, or on use."""

from __future__ import annotations

import random
import threading

from bayplan.apiserver.rest.signing_key import SigningKey

SEED = 10
"""A seed of which a key is made in 0.2 seconds."""


def test_a_key_made_in_the_background_equals_one_made_on_use() -> None:
    prepared, on_use = SigningKey(random.Random(SEED).randbytes), SigningKey(random.Random(SEED).randbytes)
    prepared.make_in_background()
    signature = prepared.sign("text")
    assert on_use.id == prepared.id
    assert on_use.verifies("text", signature)
    assert not on_use.verifies("other text", signature)


def test_a_use_waits_for_the_thread_that_makes_the_key() -> None:
    callers: list[str] = []
    started, released = threading.Event(), threading.Event()
    stream = random.Random(SEED)

    def entropy(size: int) -> bytes:
        callers.append(threading.current_thread().name)
        started.set()
        assert released.wait(60)
        return stream.randbytes(size)

    key = SigningKey(entropy)
    thread = key.make_in_background()
    assert started.wait(60)
    threading.Timer(0.05, released.set).start()
    assert key.verifies("text", key.sign("text"))
    thread.join(60)
    assert set(callers) == {thread.name}
