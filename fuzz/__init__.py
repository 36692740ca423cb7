"""Differential fuzzing: random clusters and pods, asked of a real kube-scheduler and of this engine. Run by ``make fuzz``."""
