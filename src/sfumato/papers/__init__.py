"""What the five papers report, measured again on the bundled table: their figures, and a verdict on every claim.

It stands apart because it reads raw data like the measures do, and publishes like nobody should: every release is
seeded, carries no guarantee, and leaves no trace in a ledger.
"""
