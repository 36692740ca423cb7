"""Named random streams: the same seed and name give the same numbers, whatever other streams draw."""

import subprocess
import sys

import pytest

from bayplan.base.random_streams import RandomStreams, stream_seed


def draws(seed: int, name: str) -> list[float]:
    stream = RandomStreams(seed).stream(name)
    return [stream.random() for _ in range(4)]


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        pytest.param((1, "names"), (1, "names"), True, id="same seed and name"),
        pytest.param((1, "names"), (2, "names"), False, id="another seed"),
        pytest.param((1, "names"), (1, "uids"), False, id="another name"),
        pytest.param((1, "2/x"), (12, "/x"), False, id="seed and name can't be mistaken for one another"),
        pytest.param((-1, "names"), (1, "names"), False, id="a negative seed"),
    ],
)
def test_streams_are_equal_only_for_the_same_seed_and_name(
    one: tuple[int, str], other: tuple[int, str], want: bool
) -> None:
    assert (draws(*one) == draws(*other)) is want


def test_streams_are_shared_and_independent_of_the_creation_order() -> None:
    first, second = RandomStreams(7), RandomStreams(7)
    a, b = first.stream("a"), first.stream("b")
    b2, a2 = second.stream("b"), second.stream("a")
    assert first.stream("a") is a
    assert [a.random(), b.random()] == [a2.random(), b2.random()]
    assert a.stream_name == "a"


def test_stream_seeds_and_values_never_change() -> None:
    assert stream_seed(42, "cluster.names") == 0x7E94B851CAD1D81A6EE59E6E64621B11
    assert RandomStreams(42).stream("cluster.names").random() == 0.588680097500217


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_stream_values_are_independent_of_the_hash_seed(hash_seed: str) -> None:
    program = "from bayplan.base.random_streams import RandomStreams as R; print(R(5).stream('x').getrandbits(64))"
    out = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
    )
    assert int(out.stdout) == RandomStreams(5).stream("x").getrandbits(64)
