"""Scans by the formulas of a model, chunk by chunk, in threads: for models without scans of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from riskbayes.arrays import Array, astype, one_hot, take_rows, widest_float
from riskbayes.objectives import Objective
from riskbayes.risks import NO_RISK, Risks, posterior_and_risks
from riskbayes.statistics import Statistics
from riskbayes.threads import available_threads, in_threads

if TYPE_CHECKING:
    from riskbayes.models.base import GenerativeModel

T = TypeVar("T")

SHARES = 16
"""Largest number of shares: each is a list of chunks that one thread sums, equal to finish together."""


class Split(NamedTuple):
    """How large the chunks of a scan are, which depends on where the rows are."""

    cells: int = 2**18
    """Cells of a chunk, rows x (features + classes): 2 MiB of float64."""
    mapped_cells: int = 2**20
    """The same for prediction, which keeps no sums in the cache: rows with missing cells cost a step for each
    pattern in every chunk."""
    threads: bool = True
    """Whether chunks go to Python threads, each with one BLAS thread, so that all cores also work on what is
    not a matrix product. A device has threads of its own."""


class Labels(NamedTuple):
    """The labels of rows."""

    y: Array
    """Class codes."""
    w: Array | None
    """Weights; None stands for one each."""
    n_classes: int
    """The number of classes, including those without rows."""

    def of(self, rows: Array | slice) -> Labels:
        """Return the labels of some rows."""
        w = None if self.w is None else take_rows(self.w, rows)
        return Labels(take_rows(self.y, rows), w, self.n_classes)


ON_HOST, ON_DEVICE = Split(), Split(2**27, 2**27, threads=False)


class Scanner:
    """Passes over one table of encoded rows: how it is split, in how many threads, and what a pass leaves for
    the next one.

    A subclass overrides `begin` where scores and statistics share work, or `scan` where rows are not read in
    chunks.

    Parameters
    ----------
    model : GenerativeModel
        The formulas.
    Z : encoded rows
        By this model.
    cells : float, optional
        Numbers that a scan keeps in memory for each row, besides the scores; by default one a column.
    score_cells : float, optional
        The same for scores alone; by default the larger one of `cells` and the number of columns.
    releases_lock : bool
        True if scans mostly run without the GIL, so that threads speed them up.
    sums_residuals : bool
        True if the statistics of all rows are computed at once from their residuals: those of a chunk may be
        larger than the chunk itself.
    """

    split = ON_HOST

    def __init__(
        self,
        model: GenerativeModel,
        Z: Any,
        *,
        cells: float | None = None,
        score_cells: float | None = None,
        releases_lock: bool = False,
        sums_residuals: bool = False,
    ):
        self.model, self.Z = model, Z
        self.cells = Z.shape[1] if cells is None else cells
        self.score_cells = max(self.cells, Z.shape[1]) if score_cells is None else score_cells
        self.releases_lock, self.sums_residuals = releases_lock, sums_residuals

    def scan(
        self, theta: Any, labels: Labels, objective: Objective, risks_only: bool = False
    ) -> tuple[Statistics | None, Risks]:
        """Return dS (None with `risks_only`) and the risks of all rows, in one pass."""
        own = self.model.cast(theta, self.Z)
        work = partial(self.chunk, theta=own, objective=objective, risks_only=risks_only)
        return self.sum(work, labels, self.sums_residuals and not risks_only)

    def chunk(
        self, Z: Any, labels: Labels, theta: Any, objective: Objective, risks_only: bool
    ) -> tuple[Statistics | Array | None, Risks]:
        """Return dS and the risks of a chunk; with `sums_residuals` the residual E in place of dS."""
        scores, statistics = self.begin(Z, theta)
        P, risks = posterior_and_risks(scores, labels.y, labels.w, objective)
        if risks_only:
            return None, risks
        E = objective.residual(P, labels.y)
        E = E if labels.w is None else E * astype(labels.w, E.dtype)[:, None]
        return E if self.sums_residuals else statistics(E), risks

    def begin(self, Z: Any, theta: Any) -> tuple[Array, Callable[[Array], Statistics]]:
        """Return the scores of a chunk, and the function that gives dS of its residual.

        What both need is computed once.
        """
        return self.model.scores(Z, theta), lambda E: self.model.residual_statistics(Z, E, theta)

    def statistics(self, labels: Labels) -> Statistics:
        """Return s(X, Y), the statistics of labels and weights."""
        if self.sums_residuals:
            return self.chunk_of_labels(self.Z, labels)
        S, _ = self.sum(lambda Z, own: (self.chunk_of_labels(Z, own), NO_RISK), labels)
        assert S is not None
        return S

    def chunk_of_labels(self, Z: Any, labels: Labels) -> Statistics:
        """Return the statistics of the labels and weights of a chunk."""
        return label_statistics(self.model, Z, *labels)

    def map(
        self, path: Sequence[Any], formula: Callable, start: int, n_classes: int
    ) -> Iterator[list[Array]]:
        """Yield, chunk by chunk, formula(rows, theta, number of the first row) for each theta of a path."""
        thetas, Z = [self.model.cast(theta, self.Z) for theta in path], self.Z
        width = self.score_cells + n_classes
        chunks = list(chain.from_iterable(shares_of(Z.shape[0], width, self.split.mapped_cells)))
        if len(chunks) == 1:
            return iter([[formula(Z, theta, start) for theta in thetas]])
        return self.in_threads(
            lambda chunk: [formula(Z[chunk], theta, start + chunk.start) for theta in thetas],
            chunks,
            self.releases_lock,
        )

    def forget(self) -> None:
        """Forget what the last scan left for the next one: by default nothing is left."""
        return None

    def sum(self, work: Callable, labels: Labels, residuals: bool = False) -> tuple[Statistics | None, Risks]:
        """Return the sums of the statistics and risks that `work` returns for each chunk of rows and labels.

        If it returns `residuals`, the model computes the statistics of all rows at once from them.
        """
        Z = self.Z

        def on_share(share: list[slice]) -> tuple[Any, Risks]:
            total: Any = [] if residuals else Sum()
            risks = NO_RISK
            for chunk in share:
                S, found = work(Z[chunk], labels.of(chunk))
                total.append(S)
                risks = risks.plus(found)
            return total, risks

        shares = shares_of(Z.shape[0], self.cells + labels.n_classes, self.split.cells)
        if len(shares) == 1 == len(shares[0]) and not residuals:
            return work(Z, labels)
        found = self.in_threads(on_share, shares, self.releases_lock)
        total, risks = next(found)
        for more, others in found:
            total.extend(more)
            risks = risks.plus(others)
        return self.model.statistics(Z, np.concatenate(total)) if residuals else total.value(), risks

    def in_threads(self, work: Callable[[Any], T], parts: Sequence[Any], threaded: bool) -> Iterator[T]:
        """Apply `work` to every part, in threads if `threaded`; yield the results in order."""
        several = threaded and self.split.threads and len(parts) > 1
        return in_threads(work, parts, min(len(parts), available_threads()) if several else 1)


def label_statistics(model: GenerativeModel, Z: Any, y: Array, w: Array | None, n_classes: int) -> Statistics:
    """Return s(X, Y): the statistics whose W are one-hot labels times weights."""
    return model.statistics(Z, one_hot(y, n_classes, w, widest_float(y)))


def shares_of(m: int, width: float, cells: int = ON_HOST.cells) -> list[list[slice]]:
    """Return the chunks, slices of m rows with at most about `cells` cells each, in shares for threads.

    They depend on the size of the table only, so that sums are the same for any number of threads. Where
    there is more than one chunk their number is rounded up to four, or to a multiple of `SHARES`.
    """
    number = -(-m // max(64, int(cells // max(1, width))))
    if number <= 1:
        return [[slice(0, m)]]
    several = 4 if number <= 4 else SHARES
    number = -(-number // several) * several
    size = -(-m // number)
    chunks = [slice(start, min(m, start + size)) for start in range(0, m, size)]
    each = -(-len(chunks) // SHARES)
    return [chunks[i : i + each] for i in range(0, len(chunks), each)]


class Sum:
    """A sum of statistics in one frame, added in place: chunks are many, and their arrays may be large."""

    def __init__(self) -> None:
        self.first: Statistics | None = None
        self.arrays: dict[str, Array] = {}

    def append(self, S: Statistics | None) -> None:
        """Add the statistics of one chunk."""
        if S is None:
            return
        if self.arrays:
            for name, value in S.items():
                self.arrays[name] += value
        elif self.first is None:
            self.first, self.frame = S, S.frame
        else:
            self.arrays = {name: value + S[name] for name, value in self.first.items()}
            self.first = None

    def extend(self, other: Sum) -> None:
        """Add another sum."""
        self.append(other.value())

    def value(self) -> Statistics | None:
        """Return the sum; None if nothing was added."""
        return Statistics(self.arrays, self.frame) if self.arrays else self.first
