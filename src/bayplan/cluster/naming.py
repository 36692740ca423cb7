"""Names of generated objects: random suffixes, template hashes, and the alphabet of both.

As in the API server, a generated name is a prefix and five characters of an alphabet without vowels. Template hashes
have the same form as upstream's (a 32-bit FNV-1a sum in decimal, with each digit mapped to that alphabet), but
different values: upstream hashes the memory dump of a Go struct with every field of the release, most of which
Bayplan's typed objects lack. Bayplan hashes the canonical JSON of the typed template. An existing ReplicaSet is found
by comparing templates, never by its hash, so the ReplicaSets of a recorded cluster keep their names.
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from bayplan.base.random_streams import RandomStream

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_SUFFIX_LENGTH = 5
_MAX_PREFIX_LENGTH = 63 - _SUFFIX_LENGTH
_MAX_SUBDOMAIN_LENGTH = 253
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]
_SUFFIXES = len(ALPHABET) ** _SUFFIX_LENGTH

_FNV_OFFSET = 0x811C9DC5
_FNV_PRIME = 0x01000193


class NameGenerator:
    """Generates names from prefixes, as the API server does for ``metadata.generateName``.

    Args:
        stream: the seeded random stream for the suffixes.
    """

    def __init__(self, stream: RandomStream) -> None:
        self._random = stream.random

    def generate(self, prefix: str, namespace: str, taken: Container[str]) -> str:
        """Return an unused name: the prefix (truncated to 58 characters) and five random characters.

        Args:
            prefix: the prefix of the name.
            namespace: the namespace of the object.
            taken: the existing keys (``namespace/name``).
        """
        prefix = prefix[:_MAX_PREFIX_LENGTH]
        while True:
            # One draw provides the whole suffix. It has 53 bits for 27**5 values, so the bias is below 2**-29.
            number = int(self._random() * _SUFFIXES)
            number, last = divmod(number, len(ALPHABET))
            name = prefix + _PAIRS[number // len(_PAIRS)] + _PAIRS[number % len(_PAIRS)] + ALPHABET[last]
            if f"{namespace}/{name}" not in taken:
                return name


def pod_name_prefix(owner_name: str) -> str:
    """Return the ``generateName`` for the pods of an owner: its name and a dash, or its name alone if that would be too long."""
    return f"{owner_name}-" if len(owner_name) < _MAX_SUBDOMAIN_LENGTH else owner_name


def indexed_pod_name_prefix(job_name: str, index: int) -> str:
    """Return the ``generateName`` of a pod of an Indexed Job: ``<job>-<index>-``, with the job's name truncated to fit."""
    ending = f"-{index}-"
    return job_name[: _MAX_PREFIX_LENGTH - len(ending)] + ending


def replica_set_name(deployment_name: str, template_hash: str) -> str:
    """Return ``<deployment>-<hash>``, with the deployment's name truncated so that the result is a valid name."""
    return f"{deployment_name[: _MAX_SUBDOMAIN_LENGTH - 1 - len(template_hash)]}-{template_hash}"


def revision_name(owner_name: str, template_hash: str) -> str:
    """Return the name of a ControllerRevision: ``<owner>-<hash>``, with the owner's name truncated to 223 characters."""
    return f"{owner_name[:223]}-{template_hash}"


def template_hash(template: msgspec.Struct, collision_count: int | None = None) -> str:
    """Return the hash of a template, as used in ``pod-template-hash`` and ``controller-revision-hash``.

    Args:
        template: any struct. Equal structs have equal hashes, regardless of the order of their maps.
        collision_count: a number that is hashed, too, after a collision with the hash of a different template.
    """
    data = msgspec.json.encode(template, order="deterministic")
    if collision_count is not None:
        data += collision_count.to_bytes(8, "little")
    return safe_encode(str(_fnv_1a(data)))


def safe_encode(text: str) -> str:
    """Map each character of a text to the alphabet of generated names (upstream's ``SafeEncodeString``)."""
    return "".join(ALPHABET[ord(letter) % len(ALPHABET)] for letter in text)


def _fnv_1a(data: bytes) -> int:
    total = _FNV_OFFSET
    for byte in data:
        total = ((total ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return total
