"""The virtual cluster that hosts share: object store, admission, virtual kubelet, and volume binding."""
