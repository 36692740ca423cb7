"""Values in Go's formats: durations, times, JSON, base64 and quoted strings.

One implementation of each, with Go's error messages; quantities are in `objects.quantity`. Callers convert a
`GoTextError` to an error of their own.
"""
