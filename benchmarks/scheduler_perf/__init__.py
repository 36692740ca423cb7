"""The workloads of scheduler_perf, kube-scheduler's own benchmark, by their names: shapes and counts."""
