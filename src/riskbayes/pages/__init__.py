"""The shell of a page and tables of results, which the demo and the package of the paper share."""
