"""Sweeps: simulations of many configurations, to find the best one for an objective (docs/sweeps.md)."""
