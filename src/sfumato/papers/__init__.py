"""The figures of the five papers, measured again on the bundled table, and a verdict on every claim.

Every release behind them is seeded, carries no guarantee and leaves no trace in a ledger; measures read the raw rows.
"""
