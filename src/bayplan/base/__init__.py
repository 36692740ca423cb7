"""The base layer, which all other packages use: errors, clock, seeded random streams, Go's formats, version."""
