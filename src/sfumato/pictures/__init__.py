"""Pictures. They are drawn by matplotlib, an optional extra, which is imported in this package alone."""
