"""Codes become counts, wherever they lie: in memory, in DuckDB, on a Spark cluster. All engines agree to the count."""
