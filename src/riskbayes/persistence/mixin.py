"""The method `save` of the estimators, and what it tells of them."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from riskbayes.arrays import Array, to_numpy
from riskbayes.loaded import Loadable, require
from riskbayes.persistence.files import save
from riskbayes.tables import plain


class SavingMixin(Loadable):
    """`save` of an estimator that is fitted."""

    classes_: Array
    n_features_in_: int

    def _training_weight(self) -> float:
        """Return the total weight of the training rows."""
        raise NotImplementedError

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        about: Mapping[str, Any] | None = None,
        created: str | datetime.datetime | None = None,
        classes: Iterable[type] = (),
    ) -> Path:
        """Write the fitted estimator to a file that :func:`riskbayes.load` reads without running code.

        The file is there entirely or not at all. Callbacks are not saved. `doc/model_files.md` describes the
        format.

        Parameters
        ----------
        path : path
            The file, by convention with the ending `.rb`; an existing one is replaced.
        about : dict, default=None
            What a reader of the file should know, such as the data and the held-out error: strings, numbers,
            lists and dicts. :func:`riskbayes.persistence.describe` gives it back.
        created : str or datetime, default=None
            The time to write into the file, with a time zone; by default now. With a given time, the same
            model gives the same bytes.
        classes : iterable of classes, default=()
            Model classes of your own that the estimator holds. `load` needs the same.

        Returns
        -------
        path : Path
            The file.
        """
        check_is_fitted(self)
        self._validate_params()  # type: ignore[attr-defined]
        return save(self, path, about, created, classes)

    def _described(self) -> dict[str, Any]:
        """Return what `riskbayes.persistence.describe` tells of the estimator."""
        names = getattr(self, "feature_names_in_", None)
        weight = self._training_weight()
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {
            "parameters": {name: shown(value) for name, value in parameters.items()},
            "n_features": int(self.n_features_in_),
            "feature_names": None if names is None else [str(name) for name in names],
            "classes": [shown(label) for label in to_numpy(self.classes_).tolist()],
            "rows": int(weight) if weight == int(weight) else weight,
        }

    def check_loaded(self, size: int) -> None:
        """Refuse parameters that `fit` refuses, no columns or classes, and other names than columns."""
        self._validate_params()  # type: ignore[attr-defined]
        n, classes = self.n_features_in_, self.classes_
        names = getattr(self, "feature_names_in_", None)
        require(type(n) is int and 1 <= n <= size, "n_features_in_ is not a number of columns")
        require(classes.ndim == 1 and len(classes) > 0, "classes_ is not a list of classes")
        named = names is None or (names.shape == (n,) and all(isinstance(name, str) for name in names))
        require(named, "feature_names_in_ has not a name for each column")


def shown(value: Any) -> Any:
    """Return a parameter as JSON holds it, or as Python shows it."""
    value = plain(value)
    is_json = value is None or isinstance(value, bool | int | str)
    return value if is_json or (isinstance(value, float) and math.isfinite(value)) else repr(value)
