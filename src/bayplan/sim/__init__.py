"""The simulator: runs a scheduler and a virtual cluster by discrete events in virtual time."""
