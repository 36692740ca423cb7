"""Read decision records: explain, report, export."""
