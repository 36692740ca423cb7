"""The state of the cluster as columns of int64, changed only through deltas that can be undone."""
