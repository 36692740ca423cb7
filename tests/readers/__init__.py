"""A server is read over HTTP while it schedules: each answer is consistent for one moment."""
