"""The in-tree plugins, one rule per file. No plugin depends on another."""
