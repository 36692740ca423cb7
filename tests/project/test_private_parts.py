"""Private parts of other packages that Bayplan uses still exist, and versions that may change them are excluded.

A package does not promise to keep the parts that are listed here, so `pyproject.toml` has an upper bound for its
version. When this test fails, or to raise a bound: read what changed in that part of the package, compare it with
Bayplan's file, run the tests of that file with the new version, then raise the bound and run `make constraints`.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from importlib.metadata import version
from typing import NamedTuple

import pytest

from tests.project.tree import ROOT


class PrivatePart(NamedTuple):
    """A private part of another package.

    Attributes:
        package: the name of the package.
        place: the module and the class.
        ours: the file that uses the part, relative to src/bayplan.
        names: the methods and attributes in use, or parameters of the constructor (with ``=``).
        tests: the tests that fail if the part changes.
    """

    package: str
    place: str
    ours: str
    names: tuple[str, ...]
    tests: str


PARTS = (
    PrivatePart(
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl:HttpToolsProtocol",
        "apiserver/http/protocol.py",
        (
            *("connection_made", "connection_lost", "data_received", "handle_websocket_upgrade", "shutdown"),
            *("on_message_begin", "on_headers_complete", "on_body", "on_message_complete", "on_response_complete"),
            *("app", "cycle", "flow", "headers", "loop", "scope", "timeout_keep_alive_task", "transport", "url"),
            *("config=", "server_state=", "app_state="),
        ),
        "tests/apiserver/http",
    ),
    PrivatePart(
        "uvicorn",
        "uvicorn.protocols.http.httptools_impl:RequestResponseCycle",
        "apiserver/http/protocol.py",
        ("response_complete",),
        "tests/apiserver/http",
    ),
    PrivatePart(
        "uvicorn",
        "uvicorn.protocols.http.flow_control:FlowControl",
        "apiserver/http/protocol.py",
        ("read_paused",),
        "tests/apiserver/http",
    ),
    PrivatePart(
        "uvicorn",
        "uvicorn.protocols.websockets.websockets_sansio_impl:WebSocketsSansIOProtocol",
        "apiserver/http/protocol.py",
        ("connection_lost", "send", "handshake_complete"),
        "tests/http_api/test_stream.py tests/apiserver/http",
    ),
    PrivatePart(
        "uvicorn",
        "uvicorn._types:ASGISendEvent",
        "apiserver/http/protocol.py",
        (),
        "mypy",
    ),
    PrivatePart(
        "uvicorn",
        "uvicorn:Server",
        "apiserver/http/graceful.py",
        (
            *("startup", "on_tick", "shutdown", "capture_signals", "handle_exit", "serve"),
            *("config", "force_exit", "lifespan", "server_state", "servers", "should_exit"),
        ),
        "tests/apiserver/http/test_graceful.py",
    ),
    PrivatePart(
        "uvicorn",
        "uvicorn.server:ServerState",
        "apiserver/http/graceful.py",
        ("connections", "tasks"),
        "tests/apiserver/http/test_graceful.py",
    ),
    PrivatePart(
        "pyyaml",
        "yaml._yaml:CParser",
        "formats/yaml_nodes.py",
        ("check_node", "get_node", "get_single_node", "raw_parse", "dispose"),
        "tests/formats/test_yaml_text.py tests/formats/test_fuzz.py",
    ),
    PrivatePart(
        "typer",
        "typer._click.formatting:HelpFormatter",
        "cli/main.py",
        ("section", "write_dl"),
        "tests/cli/test_help_texts.py",
    ),
    *(
        PrivatePart("typer", place, "cli/completion.py", names, "tests/cli/test_completion.py")
        for place, names in (
            ("typer._click.shell_completion:ShellComplete", ("get_completions", "get_completion_args")),
            ("typer._click.shell_completion:CompletionItem", ("type",)),
            ("typer._click.shell_completion:add_completion_class", ()),
            ("typer._click.shell_completion:split_arg_string", ()),
            ("typer._completion_classes:BashComplete", ()),
            ("typer._completion_classes:ZshComplete", ()),
            ("typer._completion_classes:FishComplete", ()),
            ("typer._completion_shared:get_completion_script", ()),
        )
    ),
    PrivatePart(
        "kubernetes",
        "kubernetes.aio.config.kube_config:KubeConfigMerger",
        "client/cluster_access.py",
        ("config",),
        "tests/client/test_cluster_access.py",
    ),
    PrivatePart(
        "kubernetes",
        "kubernetes.aio.client:Configuration",
        "client/cluster_access.py",
        (
            *("get_api_key_with_prefix", "get_basic_auth_token", "host", "proxy", "tls_server_name", "username"),
            *("cert_file", "key_file", "ssl_ca_cert", "verify_ssl"),
        ),
        "tests/client/test_cluster_access.py",
    ),
    PrivatePart(
        "asyncio",
        "asyncio.transports:Transport",
        "apiserver/http/protocol.py",
        ("write", "close", "abort", "is_closing", "get_extra_info", "pause_reading", "resume_reading"),
        "tests/apiserver/http",
    ),
)


def _todo(part: PrivatePart) -> str:
    return (
        f"{part.place} of {part.package} is not as src/bayplan/{part.ours} needs it. Read what changed there, adapt that file, "
        f"run {part.tests}, then raise the upper bound in pyproject.toml"
    )


def _is_there(found: object, name: str) -> bool:
    """Return whether a class has an attribute, or sets it on itself somewhere; or whether its constructor takes a parameter."""
    if name.endswith("="):
        assert isinstance(found, type)
        return name[:-1] in inspect.signature(found).parameters
    if hasattr(found, name):
        return True
    assert isinstance(found, type)
    sources = []
    for base in found.__mro__:
        try:
            sources.append(inspect.getsource(base))
        except (OSError, TypeError):
            continue  # Compiled and built-in modules have no source.
    return any(re.search(rf"\bself\.{name}\b.*=", source) for source in sources)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.place} in {part.ours}")
def test_private_names_in_use_exist(part: PrivatePart) -> None:
    module, _, name = part.place.partition(":")
    found = getattr(importlib.import_module(module), name, None)
    assert found is not None, _todo(part)
    assert [each for each in part.names if not _is_there(found, each)] == [], _todo(part)
    assert (ROOT / "src" / "bayplan" / part.ours).exists()


def _upper_bounds() -> dict[str, tuple[int, ...]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    requirements = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    found = {}
    for requirement in requirements:
        match = re.match(r"([\w.-]+)[^;]*<([\d.]+)", requirement)
        if match:
            found[match[1]] = tuple(int(digits) for digits in match[2].split("."))
    return found


@pytest.mark.parametrize("package", sorted({part.package for part in PARTS} - {"asyncio"}))
def test_packages_with_private_names_in_use_have_an_upper_bound(package: str) -> None:
    bounds = _upper_bounds()
    assert package in bounds, f"pyproject.toml: {package} needs an upper bound, as private parts of it are used"
    installed = tuple(int(digits) for digits in re.findall(r"\d+", version(package))[:3])
    assert installed < bounds[package], "pip would not have installed it"
