"""Sweeps: simulate many configurations to find the one that is best for an objective (docs/sweeps.md)."""
