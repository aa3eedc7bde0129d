"""The way in: tables of every common kind, read in batches and turned into leaf codes.

This is the only code that meets raw values; past it there are only small integers.
"""
