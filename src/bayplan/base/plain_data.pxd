# No C types: see docs/compiled.md.
