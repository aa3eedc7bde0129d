"""Pictures. They are drawn by matplotlib, an optional extra, which is imported in this room alone, when something is
drawn.
"""
