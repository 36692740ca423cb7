"""The engine-independent part of preemption: who may preempt, how important victims are, which node is chosen."""
