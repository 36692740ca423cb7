"""The virtual cluster that hosts share: document store, workload controllers, virtual kubelet."""
