"""Validation of names and labels, with the messages of Kubernetes.

Every function returns upstream's error messages; an empty tuple if the value is valid. Source:
https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/.
"""

import re
from collections.abc import Callable
from functools import lru_cache, wraps

_MAX_CACHED = 512

_LABEL_FORMAT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORMAT = _LABEL_FORMAT + "(\\." + _LABEL_FORMAT + ")*"
_LABEL_1035_FORMAT = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY_FORMAT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORMAT = f"({_KEY_FORMAT})?"

_LABEL = re.compile(_LABEL_FORMAT)
_SUBDOMAIN = re.compile(_SUBDOMAIN_FORMAT)
_LABEL_1035 = re.compile(_LABEL_1035_FORMAT)
_KEY = re.compile(_KEY_FORMAT)
_VALUE = re.compile(_VALUE_FORMAT)

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_KEY_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_KEY_EXAMPLES = ("MyName", "my.name", "123-abc")


def _format_text(text: str, pattern: str, *examples: str) -> str:
    """Return upstream's message about an invalid format; the odd commas are upstream's."""
    names = " or ".join(f"'{name}', " for name in examples)
    return f"{text} (e.g. {names}regex used for validation is '{pattern}')"


def _bytes(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode())


def _cached(check: Callable[[str], tuple[str, ...]]) -> Callable[[str], tuple[str, ...]]:
    """Cache the results of a check, except for texts that are too long for any name: they would fill the memory."""
    cached = lru_cache(maxsize=65536)(check)

    @wraps(check)
    def checked(value: str) -> tuple[str, ...]:
        return cached(value) if len(value) <= _MAX_CACHED else check(value)

    return checked


@_cached
def check_dns1123_label(value: str) -> tuple[str, ...]:
    """Check the name of a namespace or container: an RFC 1123 label."""
    problems = ["must be no more than 63 characters"] if _bytes(value) > 63 else []
    if not _LABEL.fullmatch(value):
        if _SUBDOMAIN.fullmatch(value):
            problems.append("must not contain dots")
        else:
            problems.append(_format_text(_LABEL_TEXT, _LABEL_FORMAT, "my-name", "123-abc"))
    return tuple(problems)


@_cached
def check_dns1123_subdomain(value: str) -> tuple[str, ...]:
    """Check the name of most objects: an RFC 1123 subdomain."""
    problems = ["must be no more than 253 characters"] if _bytes(value) > 253 else []
    if not _SUBDOMAIN.fullmatch(value):
        problems.append(_format_text(_SUBDOMAIN_TEXT, _SUBDOMAIN_FORMAT, "example.com"))
    return tuple(problems)


@_cached
def check_dns1035_label(value: str) -> tuple[str, ...]:
    """Check the name of a service: an RFC 1035 label, which must start with a letter."""
    problems = ["must be no more than 63 characters"] if _bytes(value) > 63 else []
    if not _LABEL_1035.fullmatch(value):
        problems.append(_format_text(_LABEL_1035_TEXT, _LABEL_1035_FORMAT, "my-name", "abc-123"))
    return tuple(problems)


@_cached
def check_qualified_name(value: str) -> tuple[str, ...]:
    """Check a label key, taint key or resource name: a name, optionally after a DNS subdomain and a slash."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        text = _format_text(_KEY_TEXT, _KEY_FORMAT, *_KEY_EXAMPLES)
        return (f"a valid label key {text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        if _bytes(prefix) > 253:
            problems.append("prefix part must be no more than 253 bytes")
        if not _SUBDOMAIN.fullmatch(prefix):
            problems.append("prefix part " + _format_text(_SUBDOMAIN_TEXT, _SUBDOMAIN_FORMAT, "example.com"))
    if not name:
        problems.append("name part must be non-empty")
    elif _bytes(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _KEY.fullmatch(name):
        problems.append("name part " + _format_text(_KEY_TEXT, _KEY_FORMAT, *_KEY_EXAMPLES))
    return tuple(problems)


@_cached
def check_label_value(value: str) -> tuple[str, ...]:
    """Check the value of a label; it may be empty."""
    problems = ["must be no more than 63 bytes"] if _bytes(value) > 63 else []
    if not _VALUE.fullmatch(value):
        problems.append(_format_text(_VALUE_TEXT, _VALUE_FORMAT, "MyValue", "my_value", "12345"))
    return tuple(problems)
