"""HTTP extenders, both ways: a client that asks those of a configuration, and a server that offers plugins as one."""
