"""Sources of clusters for questions: files, result directories, Bayplan servers and live clusters."""
