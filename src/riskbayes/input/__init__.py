"""The one way in: where rows come from (sources), what a table is (schemas), and cells as numbers."""
