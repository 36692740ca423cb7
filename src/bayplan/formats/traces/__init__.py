"""Readers of published cluster traces, one module for each trace: from files of any size to nodes and timed pods.

`reading.read_trace` is the entry point. Files are read as streams, one block at a time, so that memory grows only with
the pods that `selection.Selection` selects. `document` reads Trace files, which name files and a selection.
"""
