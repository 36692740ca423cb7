"""What everything else stands on: errors, clock, seeded random streams, version."""
