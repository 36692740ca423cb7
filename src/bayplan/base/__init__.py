"""The base layer, which everything else uses: errors, clock, seeded random streams, version."""
