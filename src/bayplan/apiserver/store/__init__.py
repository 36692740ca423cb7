"""Resource-versioned documents under one revision counter: in memory, watched, optionally durable in SQLite."""
