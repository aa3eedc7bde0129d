"""Engines that count where the data is: DuckDB on one machine, Spark on many. Rows never come to Python from there."""
