"""A server is read over HTTP while it schedules: whatever an answer says is true of one moment."""
