"""The page about the HTTP API lists every operation, and every command on it works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from bayplan.examples import example_path
from bayplan.formats.documents import read_documents
from bayplan.http_api.operations import OPERATIONS, ROOT
from tests.http_api.server_fixture import Document, ServerFixture, run

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "bayplan-api.md").read_text(encoding="utf-8")
ADDRESS = "localhost:6443"


class Command(NamedTuple):
    """A command of curl on the page."""

    method: str
    path: str
    body: str
    content_type: str


def _commands() -> list[Command]:
    found = []
    for line in PAGE.splitlines():
        if not line.startswith("curl "):
            continue
        words = shlex.split(line, comments=True)
        method = words[words.index("-X") + 1] if "-X" in words else "GET"
        body = words[words.index("-d") + 1] if "-d" in words else ""
        given = words[words.index("-H") + 1] if "-H" in words else ""
        # Without a content type, curl sends that of a form, which the server refuses.
        content_type = given.removeprefix("Content-Type: ") or ("application/x-www-form-urlencoded" if body else "")
        address = next(word for word in words if word.startswith(ADDRESS))
        found.append(Command(method, address.removeprefix(ADDRESS), body, content_type))
    return found


def test_each_operation_has_a_command_on_the_page() -> None:
    patterns = {
        (operation.method, re.sub(r"\{\w+\}", "[^/]+", f"{ROOT}{operation.path}")): operation
        for operation in OPERATIONS
    }
    shown = {
        key
        for command in _commands()
        for key in patterns
        if command.method == key[0] and re.fullmatch(key[1], command.path.partition("?")[0])
    }
    missing = [f"{each.method} {each.path}" for key, each in patterns.items() if key not in shown]
    assert missing == [
        f"{method} {path}" for path in ("/what-if/{id}", "/forks/{id}") for method in ("GET", "DELETE")
    ], "these ids are not known beforehand"


def test_each_operation_has_a_row_on_the_page() -> None:
    rows = set(re.findall(r"`([A-Z]+ /\S*)`", PAGE))
    missing = {f"{each.method} {each.path}" for each in OPERATIONS} - rows
    assert missing == {"GET /"}, "its section has no table"


def test_commands_on_the_page_succeed() -> None:
    documents: list[Document] = []
    for file in sorted(example_path().glob("*.yaml")):
        documents += [
            each.value for each in read_documents(file.read_bytes(), file.name) if isinstance(each.value, dict)
        ]

    async def test(fixture: ServerFixture) -> None:
        written = await fixture.send("POST", "/import", {"items": documents})
        assert written["total"] == len(documents)
        await fixture.settle()
        for command in _commands():
            if "/stream" in command.path:
                continue
            headers = {"content-type": command.content_type} if command.content_type else {}
            answer = await fixture.client.request(command.method, command.path, content=command.body, headers=headers)
            assert answer.status_code < 300, (command, answer.text)
            await fixture.settle()

    run(test)
