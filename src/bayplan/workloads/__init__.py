"""Shaping of workloads: different arrivals, run times, amounts and time scales for the pods of a trace, by a seed."""
