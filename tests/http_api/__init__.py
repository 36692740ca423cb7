"""Our own API, in process."""
