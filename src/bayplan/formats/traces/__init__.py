"""Readers of published cluster traces, one module for each: files of any size to nodes and timed pods.

`reading.read_trace` is the entry point. Files are read as streams, one block at a time; memory is bounded by the pods that a
`selection.Selection` selects. `document` reads a Trace file, which names files and a selection.
"""
