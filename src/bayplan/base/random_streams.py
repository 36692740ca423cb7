"""Random numbers from named streams of one seed: the only source of randomness in Bayplan.

Every consumer (ties between nodes, generated pod names, arrival times of a workload) draws from its own stream, so
another draw in one place does not change the numbers in other places. The numbers of a stream depend only on the seed
and the stream's name: not on the order in which streams are created, `PYTHONHASHSEED` or the machine.

The generator is CPython's Mersenne Twister, seeded with an integer. Python documents that `random()` and
`getrandbits()` stay the same in future versions; `choice`, `shuffle` and the distributions may change. Code whose
results must stay identical therefore uses only the first two.
"""

from __future__ import annotations

import hashlib
import random


class RandomStream(random.Random):
    """A generator that knows the name of its stream. Created by `RandomStreams.stream`; its consumers share it.

    Attributes:
        stream_name: the name of the stream, for diagnostics.
    """

    stream_name: str = ""


class RandomStreams:
    """The random streams of one seed.

    Args:
        seed: any integer; the same seed gives the same streams.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, RandomStream] = {}

    def stream(self, name: str) -> RandomStream:
        """Return the stream with a name: always the same object, so that its consumers share one sequence."""
        stream = self._streams.get(name)
        if stream is None:
            stream = RandomStream(stream_seed(self.seed, name))
            stream.stream_name = name
            self._streams[name] = stream
        return stream


def stream_seed(seed: int, name: str) -> int:
    """Derive the 128-bit seed of a stream from the run's seed and the stream's name, with BLAKE2b."""
    # The length and the colon show where the seed ends: (1, "2x") and (12, "x") differ, whatever characters a name has.
    text = str(seed)
    digest = hashlib.blake2b(f"{len(text)}:{text}:{name}".encode(), digest_size=16, person=b"bayplan.streams").digest()
    return int.from_bytes(digest, "big")
