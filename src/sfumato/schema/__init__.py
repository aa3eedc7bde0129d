"""What is public about a table: attributes with their leaves, taxonomies, conditions, and the schema that holds them.

Everything that shapes a release comes from here, and nothing from the rows.
"""
