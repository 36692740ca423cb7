"""The live host: the engine on a real cluster, in real time."""
