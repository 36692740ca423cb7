"""The scheduling framework: extension points, Status, cycle state, registry, profiles, configuration."""
