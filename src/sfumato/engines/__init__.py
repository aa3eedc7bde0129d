"""Engines count coded rows where they lie: in memory, in DuckDB, on a Spark cluster. All give the same counts."""
