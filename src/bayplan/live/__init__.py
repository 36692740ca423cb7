"""The live host: runs the engine on a real cluster, in real time."""
