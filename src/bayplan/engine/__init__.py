"""The engine: queue, cycle, preemption, decision records. Pure: no I/O, no clock, no global randomness."""
