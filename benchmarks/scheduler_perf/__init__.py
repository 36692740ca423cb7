"""The workloads of scheduler_perf, kube-scheduler's own benchmark, by name: shapes and counts."""
