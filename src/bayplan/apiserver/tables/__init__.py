"""Tables: the server-side output of `kubectl get`."""
