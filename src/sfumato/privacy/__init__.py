"""The trusted core, and the only door to the data: budgets, questions, the meter that charges for them, noise, ledger.

It is kept small. Each claim about privacy is proved beside the code that relies on it.
"""
