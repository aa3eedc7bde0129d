"""What the public gets: noisy counts of regions, ways to use them, and the manifest. It knows nothing of the raw
data.
"""
