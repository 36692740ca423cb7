"""HTTP extenders, in both directions: a client for those of a configuration, and a server that offers plugins as one."""
