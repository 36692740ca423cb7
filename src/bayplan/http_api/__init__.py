"""Bayplan's own HTTP API, /bayplan/v1, and the REST operations of kube-scheduler-simulator."""
