"""A client of a Kubernetes API: credentials, connections, lists and watches, rate limits, and the scheduler's requests.

The conversion of the engine's actions to requests (`requests`, `pod_status`, `event_recorder`, `exchanges`) is
independent of sockets, so any host can execute them, over HTTP or in process.
"""
