"""The demo: models of riskbayes beside those of scikit-learn on five tables, and the page that shows them."""
