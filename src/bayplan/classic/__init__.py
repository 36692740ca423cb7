"""The classic scheduler (Kubernetes 1.16) on the engine: its cycle, preemption, queue, and event handling."""
