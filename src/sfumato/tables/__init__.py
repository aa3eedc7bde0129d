"""Open tables of every common kind, read them in batches, and turn their values into leaf codes.

Only this room and the engines meet raw values; everything else works on small integers.
"""
