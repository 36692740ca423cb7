"""Tables: what `kubectl get` prints, worked out by the server."""
