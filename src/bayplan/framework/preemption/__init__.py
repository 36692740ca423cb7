"""The engine-independent part of preemption: which pods may preempt, how victims rank, which node is chosen."""
