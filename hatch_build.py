"""Hatchling hooks of the package's build: compiled modules, and the project's addresses.

If a compiler works, a wheel contains the compiled modules. Without a compiler it is pure Python, and the build warns.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

VARIABLE = "BAYPLAN_COMPILE"
"""Environment variable: ``0`` to never compile, ``1`` to fail if nothing can compile, otherwise compile if possible."""

ADDRESS_VARIABLE = "BAYPLAN_URL"
"""Environment variable with the address of the repository, for `project.urls`.

The release workflow sets it, because a fork has a different address.
"""


class ProjectUrlsHook(MetadataHookInterface):
    """Sets `project.urls` from the environment."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the addresses, or none without `BAYPLAN_URL`. Hatchling calls this when it reads the metadata."""
        address = os.environ.get(ADDRESS_VARIABLE, "").rstrip("/")
        if address:
            metadata["urls"] = {
                "Source": address,
                "Issues": f"{address}/issues",
                "Changelog": f"{address}/blob/main/CHANGELOG.md",
                "Security": f"{address}/security/policy",
            }


class CompiledModulesHook(BuildHookInterface[Any]):
    """Compiles modules: in the source tree for an editable install, otherwise into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the modules. Hatchling calls this before it collects files."""
        wanted = os.environ.get(VARIABLE, "")
        if wanted == "0":
            return
        from building.compilers import NoCompilerError, find_compiler
        from building.extensions import build, installed_files
        from building.modules import ROOT, TAG, all_variants, checkout_sources, variant_of_this_machine

        sources = checkout_sources()
        try:
            compiler = find_compiler(install_zig=False)
        except NoCompilerError as problem:
            if wanted == "1":
                raise
            self.app.display_warning(f"Bayplan is installed uncompiled, and runs several times slower: {problem}")
            return
        editable = version == "editable"
        variants = [variant_of_this_machine()] if editable else all_variants()
        build(sources, compiler, ROOT / "build" / "compiled" / TAG, variants)
        if not editable:
            build_data["force_include"].update(installed_files(sources, compiler))
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
