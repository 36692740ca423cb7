"""From files to an API that is ready to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.apiserver.http.server import ServerOptions
from bayplan.app.api_service import make_api_server
from bayplan.base.errors import InputError
from bayplan.examples import example_path


def test_the_bundled_example_is_loaded() -> None:
    server, loaded = make_api_server(ServerOptions(port=0), [str(example_path("three-zones"))])
    try:
        assert loaded.counts["Node"] == len(server.backend.store.between("nodes"))
        assert loaded.unknown == {}
        assert server.url.startswith("http://127.0.0.1:")
    finally:
        server.close()


def test_a_broken_file_is_told_and_the_address_is_free_again(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    path.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: 3}\n")
    with pytest.raises(InputError, match=r"pods\.yaml.*cannot unmarshal number into Go struct field PodSpec"):
        make_api_server(ServerOptions(port=0), [str(path)])
