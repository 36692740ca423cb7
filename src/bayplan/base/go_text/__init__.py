"""Values as Go writes and reads them: durations, times, JSON, base64 and quoted strings.

One implementation of each, in the words of Go's errors; quantities are in `objects.quantity`. Users turn a `GoTextError` into
an error of their own.
"""
