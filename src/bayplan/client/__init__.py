"""A client of a Kubernetes API: access (kubeconfig), transport (lists, watches, requests, rate limits), and the requests of
actions.

The conversion of the engine's actions to requests (`requests`, `pod_status`, `event_recorder`, `exchanges`) is independent of
sockets: any host can execute them, over HTTP or within a process.
"""
