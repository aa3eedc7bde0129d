"""The trusted core: budgets, the ledger, exact randomness, and scores with their sensitivities.

It is small on purpose and slow to change; each claim is proved beside the code that relies on it.
"""
