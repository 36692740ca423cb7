"""Help texts follow one rule: a noun phrase or an imperative of at most 12 words, then the default in brackets."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command

from bayplan.cli.main import COMMANDS, Command, build_app, load

MAX_WORDS = 12
NOT_A_BEGINNING = re.compile(r"(What|Where|Which|Who|How|When|Without|With|Of|As|Let|Don't|Its|The|A|An)\b")
UNIDIOMATIC = re.compile(
    r"\b(anew|beside|tells?|told|said|say|whoever|whatever|nobody|somebody|hardly|meanwhile|in earnest|by and by"
    r"|so (?:many|much|long|often)(?! as)|(?:goes?|go|comes?) (?:on|to|with)|as (?:it is|they are)|takes? over"
    r"|is wanted|(?:of|from|in) (?:here|there|now)|, where (?:it|they|there|that|one))\b",
    re.IGNORECASE,
)
DEFAULT = re.compile(r"\[(default: .+|required)\]$")


def texts(command: Command) -> list[tuple[str, str]]:
    """Return the names of a command's arguments and options, with their printed help."""
    found = []
    context = get_command(build_app([command.name])).make_context(
        "bayplan", [command.name, "--help"], resilient_parsing=True
    )
    parameters = get_command(build_app([command.name])).commands[command.name].params  # type: ignore[attr-defined]
    for each in parameters:
        record = each.get_help_record(context)
        if record is not None:
            found.append((record[0], record[1]))
    return found


OPTIONS = [
    pytest.param(name, text, id=f"{command.name} {name.partition(' ')[0]}")
    for command in COMMANDS
    for name, text in texts(command)
]


@pytest.mark.parametrize(("name", "text"), OPTIONS)
def test_option_help_is_short_and_idiomatic(name: str, text: str) -> None:
    sentence = text.partition("[")[0].strip()
    assert 1 <= len(re.findall(r"[^\s]*\w[^\s]*", sentence)) <= MAX_WORDS
    assert sentence.endswith(".")
    assert not NOT_A_BEGINNING.match(sentence)
    assert not UNIDIOMATIC.search(text)


def test_options_with_a_value_show_their_default() -> None:
    with_value = [
        (str(each.id), text)
        for each in OPTIONS
        for name, text in [each.values]
        if isinstance(name, str) and isinstance(text, str) and re.search(r"^-.*[ =][A-Z\[]", name)
    ]
    assert len(with_value) > 50
    assert [option for option, text in with_value if not DEFAULT.search(text.strip())] == []


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_command_help_is_short_and_idiomatic(command: Command) -> None:
    explanation = load(command.name).__doc__ or ""
    assert len(command.summary.split()) <= MAX_WORDS
    assert not NOT_A_BEGINNING.match(command.summary)
    assert not UNIDIOMATIC.search(explanation)


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_command_help_ends_with_a_valid_example(command: Command) -> None:
    lines = (load(command.name).__doc__ or "").strip().splitlines()
    example = re.fullmatch(r"\s*Example: bayplan (.*)", lines[-1])
    assert example is not None
    assert f"bayplan {command.name}" in lines[-1] or command.name == "example"
    app = get_command(build_app([command.name]))
    options = {each for parameter in app.commands[command.name].params for each in parameter.opts}  # type: ignore[attr-defined]
    used = re.findall(r" (--[a-z-]+)", lines[-1])
    assert [each for each in used if each not in options] == [] or command.name == "example"


def test_help_patterns_match_only_unidiomatic_text() -> None:
    assert UNIDIOMATIC.search("Let the scheduler place pods anew.")
    assert NOT_A_BEGINNING.match("Where to listen; 0 takes a free one.")
    assert not UNIDIOMATIC.search("Seed for tie-breaking and generated names. [default: 0]")
