"""Sweeps: simulate many configurations to find the best for an objective (docs/sweeps.md)."""
