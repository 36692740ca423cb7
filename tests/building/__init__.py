"""Tests of compiled modules, and of how they are built, found and packed."""
