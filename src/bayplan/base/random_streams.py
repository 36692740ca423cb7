"""Randomness from named streams of one seed: the only source of random numbers in Bayplan.

Every consumer (ties of the scheduler, generated pod names, arrival times of a workload) draws from its own
stream, so that an additional draw in one place never changes the numbers of another. A stream depends only on the seed
and its name: not on the order in which streams are created, ``PYTHONHASHSEED``
or the machine.

The generator is CPython's Mersenne Twister, seeded with an integer. Its ``random()`` and ``getrandbits()`` are
documented to stay the same across Python versions; ``choice``, ``shuffle`` and the distributions are not, so code whose
results must stay identical uses only the first two.
"""

from __future__ import annotations

import hashlib
import random


class RandomStream(random.Random):
    """A generator with the name of its stream. Created by :meth:`RandomStreams.stream`, shared by reference.

    Attributes:
        stream_name: the name it was derived for, shown in diagnostics.
    """

    stream_name: str = ""


class RandomStreams:
    """The random streams of one seed.

    Args:
        seed: any integer; equal seeds give equal streams.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, RandomStream] = {}

    def stream(self, name: str) -> RandomStream:
        """Return the stream of this name: the same object each time, so that its consumers share one sequence."""
        stream = self._streams.get(name)
        if stream is None:
            stream = RandomStream(stream_seed(self.seed, name))
            stream.stream_name = name
            self._streams[name] = stream
        return stream


def stream_seed(seed: int, name: str) -> int:
    """Derive the 128-bit seed of a stream from the run's seed and the stream's name with BLAKE2b."""
    # The length prefix distinguishes (1, "2/x") and (12, "/x"), whatever characters a name has.
    text = str(seed)
    digest = hashlib.blake2b(f"{len(text)}:{text}:{name}".encode(), digest_size=16, person=b"bayplan.streams").digest()
    return int.from_bytes(digest, "big")
