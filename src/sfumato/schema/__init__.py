"""What is public about a table: the schema, its attributes with their leaves and taxonomies, and conditions on them.

Everything that shapes a release comes from here, and nothing from the rows.
"""
