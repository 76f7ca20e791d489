"""Warnings of this package."""


class FlooredWarning(UserWarning):
    """The closed form itself sits on a floor: the data do not determine its parameters."""
