"""The trusted core and the only door to the data: budgets, questions, the meter that charges for them, exact noise, and
the ledger.

It is small on purpose and slow to change; each claim is proved beside the code that relies on it.
"""
