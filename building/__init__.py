"""Compiles the modules that have a ``.py`` and a ``.pxd``; used by `make build` and the build hook of the package."""
