"""Users: who sends a request, and the headers with which a client acts as a different user (impersonation).

Source: staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation of v1.36.3. Every client may impersonate every user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

import msgspec

from bayplan.apiserver.model.errors import bad_request
from bayplan.apiserver.model.object_meta import check_name
from bayplan.base.go_text.quoting import quote
from bayplan.base.plain_data import Document

_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
_SERVICE_ACCOUNTS = "system:serviceaccounts"
_PREFIX, _EXTRA = b"impersonate-", "extra-"
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_NO_EXTRA: Mapping[str, list[str]] = {}


class User(msgspec.Struct, frozen=True):
    """The user of a request.

    Attributes:
        name, uid: the name and uid; without a uid, it is empty.
        groups: the groups.
        extra: further values by key.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, list[str]] = _NO_EXTRA

    def document(self) -> Document:
        """Return the user as a UserInfo object, without empty fields."""
        found: Document = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        found["extra"] = {key: list(values) for key, values in self.extra.items()}
        return {name: value for name, value in found.items() if value}


ADMIN = User("admin", "admin", ("system:masters", _AUTHENTICATED))
"""The user of clients, unless they impersonate a different one."""


def component(name: str) -> User:
    """Return the user of a cluster component."""
    return User(name, name, (_AUTHENTICATED,))


def user_of(headers: Iterable[tuple[bytes, bytes]]) -> User:
    """Return the user that the headers of a client's request impersonate, or the administrator.

    Args:
        headers: all headers, with names in lower case.

    Raises:
        ApiError: the headers name groups, a uid, or extra values, but no user.
    """
    sent = [(name[len(_PREFIX) :], value) for name, value in headers if name.startswith(_PREFIX)]
    return _impersonated(sent) if sent else ADMIN


def _impersonated(sent: list[tuple[bytes, bytes]]) -> User:
    fields: dict[str, list[str]] = {}
    extra: dict[str, list[str]] = {}
    for raw_field, raw_value in sent:
        field, value = raw_field.decode("latin-1"), raw_value.decode(errors="replace")
        if field.startswith(_EXTRA):
            extra.setdefault(_unescaped(field[len(_EXTRA) :]), []).append(value)
        else:
            fields.setdefault(field, []).append(value)
    name, uid = (fields.get(field, [""])[0] for field in ("user", "uid"))
    groups = fields.get("group", [])
    if name:
        return User(name, uid, _all_groups(name, groups), dict(sorted(extra.items())))
    if not uid and not groups and not extra:
        return ADMIN
    shown = f'Name:"", UID:{quote(uid)}, Groups:{_shown(groups)}, Extra:map[string][]string'
    shown += "(nil)" if not extra else f"{{{', '.join(f'{quote(key)}:{_shown(extra[key])}' for key in sorted(extra))}}}"
    raise bad_request(f"requested &user.DefaultInfo{{{shown}}} without impersonating a user name")


def _all_groups(name: str, groups: list[str]) -> tuple[str, ...]:
    """Return the groups of an impersonated user: the requested ones, or those of a service account, and one for all users."""
    found = groups or _groups_of_account(name)
    if name == "system:anonymous":
        wanted = _UNAUTHENTICATED
    else:
        wanted = _UNAUTHENTICATED if _UNAUTHENTICATED in found else _AUTHENTICATED
    return tuple(found) if wanted in found else (*found, wanted)


def _groups_of_account(name: str) -> list[str]:
    prefix, _, account = name.partition("system:serviceaccount:")
    namespace, _, own_name = account.partition(":")
    if prefix or check_name(namespace, "label") or check_name(own_name, "subdomain"):
        return []
    return [_SERVICE_ACCOUNTS, f"{_SERVICE_ACCOUNTS}:{namespace}"]


def _unescaped(key: str) -> str:
    return key if _BAD_ESCAPE.search(key) else unquote_to_bytes(key).decode(errors="replace")


def _shown(texts: list[str]) -> str:
    """Return a list as Go prints it in its syntax."""
    return f"[]string{{{', '.join(quote(each) for each in texts)}}}" if texts else "[]string(nil)"
