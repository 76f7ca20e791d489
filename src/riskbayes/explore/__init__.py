"""A page to play with: points, a model and risk-based calibration, scan by scan; and a server for it."""
