"""Compiles the modules that have a ``.pxd`` beside their ``.py``: run by `make build` and by the build hook of the package."""
