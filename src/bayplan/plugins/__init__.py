"""The in-tree plugins, one rule per file. Plugins are independent of one another."""
