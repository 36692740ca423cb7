"""The object store: items under one revision counter, with watches, in memory and optionally in an SQLite file."""
