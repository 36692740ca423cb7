"""Dry runs of preemption: what would fit where if pods were not there."""
