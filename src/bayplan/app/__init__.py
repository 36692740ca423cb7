"""Wiring: the only place that knows hosts, engine and presentation together."""
