"""Preemption, as far as it knows no engine: who may preempt, which victims matter most, which node is chosen."""
