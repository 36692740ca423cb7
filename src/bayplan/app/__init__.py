"""Wiring: the only package that combines hosts, engine and presentation."""
