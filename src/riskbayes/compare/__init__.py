"""Compare models on a user's own table: splits, contenders, figures, findings and the report."""
