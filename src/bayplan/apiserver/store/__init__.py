"""The object store: items under one revision counter, in memory, with watches, and optionally durable in an SQLite
file.
"""
