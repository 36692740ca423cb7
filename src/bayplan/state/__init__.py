"""The cluster as columns of int64, written only through deltas that can be undone."""
