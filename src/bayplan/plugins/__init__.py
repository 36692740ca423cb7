"""The in-tree plugins, one rule a file. Plugins do not know one another."""
