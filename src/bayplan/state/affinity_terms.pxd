# No types: compiled for the speed of its calls.
