"""Reports: one HTML file about one or several runs, from their result directories (docs/reports.md)."""
