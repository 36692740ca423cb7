"""A client of a Kubernetes API: who to ask (kubeconfig), how (lists, watches, requests, rate limits), and what to send.

What the engine's actions become on the wire (`requests`, `pod_status`, `event_recorder`, `exchanges`) knows no sockets: any host
can carry it out, over HTTP or within a process.
"""
