"""What the public gets: what was measured, a model that answers from it, the manifest, and ways to use and check them.

Nothing here knows the raw data.
"""
