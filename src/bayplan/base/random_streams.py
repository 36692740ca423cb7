"""Randomness from named streams of one seed: the only source of random numbers in Bayplan.

Every consumer (tie picks of the scheduler, generated pod names, arrival times of a workload) draws from a stream of
its own, so that one more draw in one place never shifts the numbers of another. A stream is a function of the seed
and of its name and of nothing else: not of the order in which streams are asked for, not of ``PYTHONHASHSEED``, not
of the machine.

The generator is CPython's Mersenne Twister, seeded with an integer. Its ``random()`` and ``getrandbits()`` are
documented to stay the same across Python versions; ``choice``, ``shuffle`` and the distributions are not, so what
must stay byte-identical for years uses the first two only.
"""

from __future__ import annotations

import hashlib
import random


class RandomStream(random.Random):
    """A generator that knows where it comes from. Made by :meth:`RandomStreams.stream`, shared by reference.

    Attributes:
        stream_name: the name it was derived for, shown in diagnostics.
    """

    stream_name: str = ""


class RandomStreams:
    """Hand out the random streams of one seed.

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
    # The length in front keeps (1, "2/x") and (12, "/x") apart whatever characters a name has.
    text = str(seed)
    digest = hashlib.blake2b(f"{len(text)}:{text}:{name}".encode(), digest_size=16, person=b"bayplan.streams").digest()
    return int.from_bytes(digest, "big")
