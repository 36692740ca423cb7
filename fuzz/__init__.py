"""Differential fuzzing: random clusters and pods, decided by a real kube-scheduler and by Bayplan.

Run by ``make fuzz``.
"""
