"""Reports: one HTML file about one or several runs, created from their result directories (docs/reports.md)."""
