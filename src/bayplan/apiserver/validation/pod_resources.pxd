# Compiled without C types: see docs/compiled.md.
