"""Tests of the compiled modules: how they are built, found and packaged."""
