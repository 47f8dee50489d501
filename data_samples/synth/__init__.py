"""A small synthetic web: texts in `sources/`, dressed as pages, packed into archives."""
