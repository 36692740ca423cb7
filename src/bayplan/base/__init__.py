"""The base layer, used by all others: errors, clock, seeded random streams, version."""
