"""Names that controllers and the API server make."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.naming import (
    ALPHABET,
    NameGenerator,
    indexed_pod_name_prefix,
    pod_name_prefix,
    replica_set_name,
    revision_name,
    safe_encode,
    template_hash,
)
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.workloads import PodTemplateSpec


def generator(seed: int = 1) -> NameGenerator:
    return NameGenerator(RandomStreams(seed).stream("names"))


def test_a_generated_name_is_the_prefix_and_five_characters_without_vowels() -> None:
    name = generator().generate("web-", "default", ())
    assert re.fullmatch(rf"web-[{ALPHABET}]{{5}}", name)


def test_a_long_prefix_is_cut_so_that_the_name_has_63_characters() -> None:
    name = generator().generate("x" * 70, "default", ())
    assert len(name) == 63
    assert name.startswith("x" * 58)


def test_a_taken_name_is_not_given_again() -> None:
    first = generator().generate("web-", "default", ())
    second = generator().generate("web-", "default", {f"default/{first}"})
    elsewhere = generator().generate("web-", "default", {f"other/{first}"})
    assert first != second
    assert elsewhere == first


def test_all_characters_come_up_in_all_places() -> None:
    names = generator()
    suffixes = [names.generate("", "", ()) for _ in range(2000)]
    assert [sorted({suffix[place] for suffix in suffixes}) for place in range(5)] == [sorted(ALPHABET)] * 5


@pytest.mark.parametrize(
    ("got", "want"),
    [
        pytest.param(pod_name_prefix("web"), "web-", id="pods of an owner"),
        pytest.param(pod_name_prefix("x" * 253), "x" * 253, id="pods of an owner with the longest name"),
        pytest.param(indexed_pod_name_prefix("calc", 12), "calc-12-", id="pods of an indexed job"),
        pytest.param(indexed_pod_name_prefix("x" * 60, 12), "x" * 54 + "-12-", id="of one with a long name"),
        pytest.param(replica_set_name("web", "abc"), "web-abc", id="a replica set"),
        pytest.param(replica_set_name("x" * 253, "abc"), "x" * 249 + "-abc", id="of a deployment with a long name"),
        pytest.param(revision_name("db", "abc"), "db-abc", id="a revision"),
        pytest.param(revision_name("x" * 230, "abc"), "x" * 223 + "-abc", id="of an owner with a long name"),
    ],
)
def test_names(got: str, want: str) -> None:
    assert got == want


def test_digits_are_written_in_the_alphabet_of_names() -> None:
    # 48 to 57 modulo 27 are 21 to 26, then 0 to 3.
    assert safe_encode("0123456789") == ALPHABET[21:] + ALPHABET[:4]


@given(st.dictionaries(st.text("abc", min_size=1), st.text("xyz")))
def test_the_hash_of_a_template_does_not_depend_on_the_order_of_its_labels(labels: dict[str, str]) -> None:
    turned = dict(reversed(labels.items()))
    one, other = (PodTemplateSpec(metadata=ObjectMeta(labels=item)) for item in (labels, turned))
    assert template_hash(one) == template_hash(other)
    assert template_hash(one) != template_hash(one, 0)
    assert set(template_hash(one)) <= set(ALPHABET)
