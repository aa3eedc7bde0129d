"""What the public gets: what was measured, a model that answers from it, the manifest, and ways to use and check them.

It knows nothing of the raw data.
"""
