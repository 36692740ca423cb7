"""A fast path for common YAML: ryaml, another libyaml binding, if it is installed and returns the same result.

ryaml (serde-yaml, a translation of libyaml to Rust) parses two to three times as fast as PyYAML's C composer, but
resolves plain scalars by YAML 1.2. Its result is used only if both dialects must agree: no merge keys, tags, directives
or infinities, and nothing in the result that kubectl could have read differently (`0777`, `yes` and `1_000` as strings,
floats, integers beyond 64 bits, keys that were numbers or booleans). In all other cases, and if ryaml rejects the text,
`bayplan.formats.yaml_nodes` parses it, which is always right and needs only PyYAML. A test checks that both agree.
"""

import importlib
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec


def _find_loads() -> Callable[[str], object] | None:
    try:
        loads: Callable[[str], object] = importlib.import_module("ryaml").loads
    except ImportError:
        return None
    return loads


_loads = _find_loads()
IS_INSTALLED = _loads is not None

_TAG = re.compile(r"(?:\A|[\s,:\[{])!")

# The JSON is compact, so every quote starts or ends a string. In YAML, the string may have been a plain scalar that
# kubectl reads as another type. The patterns start with a literal quote for speed. They may match too much, but never
# too little.
_WORDS = "[yYnN]|[yY]es|YES|[nN]o|NO|[oO]n|ON|[oO]ff|OFF"
_NUMBERS = "[-+]?(?:0[0-9_xXoObB]|[0-9.eE+-]*_)[0-9a-fA-F_.eE+-]*"
# In Python, the keys 1, 1.0 and True are one key, of which only the first spelling is left.
_ODD_KEYS = "-?[0-9]+(?:[.eE][0-9.eE+-]*)?|true|false"
_DOUBTFUL = re.compile(rf'"(?=[yYnNoOtf0-9.+_-])(?:(?:{_WORDS}|{_NUMBERS})"|(?:{_ODD_KEYS})":)'.encode())
_LONG_INTEGER = re.compile(rb"[:\[,](?=[-1-9])-?[0-9]{19}")
_TO_ZEROS = bytes.maketrans(b"123456789", b"000000000")


class Answer(NamedTuple):
    """A document as compact JSON and as plain data."""

    raw: bytes
    value: object


class _Doubt(Exception):
    """kubectl may read the text differently, so the slow parser must read it."""


def _reject_float(text: str) -> float:
    raise _Doubt(text)


def _has_long_integer(raw: bytes) -> bool:
    """Return whether an integer may exceed 64 bits. The search for 19 digits is four times as fast as the pattern."""
    return b"0000000000000000000" in raw.translate(_TO_ZEROS) and _LONG_INTEGER.search(raw) is not None


_decode = msgspec.json.Decoder(float_hook=_reject_float).decode


def parse(text: str) -> Answer | None:
    """Return the only document of a text; None if the slow path is needed.

    The result is also None if the document is empty or invalid, or if there are several.
    """
    if (
        _loads is None
        or "<<" in text
        or ("!" in text and _TAG.search(text) is not None)
        or (".inf" in text or ".Inf" in text or ".INF" in text or ".nan" in text or ".NaN" in text or ".NAN" in text)
        or (text.startswith("%") or "\n%" in text or "\ufeff" in text)
    ):
        return None
    try:
        raw = msgspec.json.encode(_loads(text))
        if raw == b"null" or _DOUBTFUL.search(raw) is not None or _has_long_integer(raw):
            return None
        return Answer(raw, _decode(raw))
    except Exception:
        return None
    except BaseException as problem:
        # A panic in Rust is raised as an exception that derives from BaseException.
        if type(problem).__name__ == "PanicException":
            return None
        raise
