"""Our own HTTP API, /bayplan/v1, and the operations of kube-scheduler-simulator: what a running server knows, told."""
