"""Dry runs of preemption: whether a pod would fit if other pods were removed."""
