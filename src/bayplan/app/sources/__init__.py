"""Where questions get their cluster from: files, a result directory, a running Bayplan, a live cluster."""
