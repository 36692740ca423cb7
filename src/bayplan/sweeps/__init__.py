"""Sweeps: simulations of many configurations, to find the one that is best for an objective (docs/sweeps.md)."""
