"""Sources of clusters for questions: files, result directories, running Bayplans and live clusters."""
