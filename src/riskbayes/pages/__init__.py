"""Pages: one shell, its macros and its style, and tables of results; each page is a template of its room."""
