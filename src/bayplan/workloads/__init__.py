"""Change the workload of a trace: which pods arrive when, how long they run and how much they request, by a seed."""
