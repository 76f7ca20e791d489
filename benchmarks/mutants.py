"""Plant faults in formulas, one at a time, and run the tests of their room: those that survive lack a test.

    python benchmarks/mutants.py --jobs 16
    python benchmarks/mutants.py --only rc,anchor       # those whose file or description has one of the words

Every fault changes an answer: none only a time, a message or a rounding. Each is planted in a copy of the
tree, in which the tests run with `-x`; their files must pass there without a fault first. A fault whose text
is not in its file exactly once any more is stale, and fails the run as a survivor does: mend the list. A room
whose tests need a package that is not installed is not run, and said so.

mutmut and cosmic-ray mutate every line they find, thousands of them, many of which change nothing; here the
list is chosen, so that every survivor is a test to write.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "benchmarks", "doc", "examples", "pyproject.toml", "README.md", "CHANGELOG.md")
"""What the tests read of the tree."""

MOST_SECONDS = 600
"""A room that takes longer than this under a fault hangs, which its tests have noticed then."""

KILLED, SURVIVED, STALE, NOT_RUN = "killed", "survived", "stale", "not run"


@dataclass(frozen=True)
class Fault:
    """A text of a file and what stands in its place; the tests that should notice; what is wrong then."""

    file: str
    before: str
    after: str
    room: str
    """Arguments of pytest, without the folder of the tests."""
    what: str
    needs: tuple[str, ...] = ()
    """Packages without which the tests of the room that should notice are skipped."""


FAULTS = [
    # models
    Fault(
        "models/base.py",
        "xp, mass = namespace(s0), s0 + alpha if alpha else s0",
        "xp, mass = namespace(s0), s0",
        "laws/test_laws.py estimators/test_estimators.py",
        "pseudo-counts of classes are not counted",
    ),
    Fault(
        "models/coordinates.py",
        "(total + alpha * log_prior.shape[0]) - alpha",
        "(total + alpha) - alpha",
        "laws/test_laws.py learners/test_learners.py",
        "the inverse of p(y) counts the pseudo-counts of one class",
    ),
    Fault(
        "models/categorical.py",
        'counts = S["counts"] + self.alpha\n',
        'counts = S["counts"] + 2 * self.alpha\n',
        "models/test_categories.py estimators/test_estimators.py",
        "pseudo-counts of categories count twice",
    ),
    Fault(
        "models/categorical.py",
        "math.log(self.alpha) - log_sums",
        "0.0 * log_sums",
        "models/test_categories.py",
        "an unseen category has the factor one though there are pseudo-counts",
    ),
    Fault(
        "models/categorical.py",
        "np.where((codes == sizes)[:, :, None], 0.0, found)",
        "found",
        "models/test_contributions.py",
        "a missing category contributes as the last one",
    ),
    Fault(
        "models/categorical.py",
        "return float(len(present) + (present * S.frame.n_categories).sum())",
        "return float(len(present) + S.frame.n_categories.sum())",
        "models/test_categories.py",
        "degrees of freedom of one class for all",
    ),
    Fault(
        "models/gaussian_nb.py",
        "mass = own if m2 == 0 else own + m2",
        "mass = own",
        "estimators/test_estimators.py laws/test_laws.py",
        "variances are divided by the mass without the prior's",
    ),
    Fault(
        "models/gaussian_nb.py",
        "missing * (theta.variances - theta.epsilon + mu * mu)",
        "missing * (mu * mu)",
        "models/test_missing_gaussian.py",
        "missing cells are expected without their variance",
    ),
    Fault(
        "models/gaussian_nb.py",
        "squares = own * (theta.variances - theta.epsilon + theta.means**2)",
        "squares = own * (theta.variances + theta.means**2)",
        "laws/test_laws.py models/test_missing_cells_nb.py",
        "the epsilon of variances is expected once more",
    ),
    Fault(
        "models/gaussian_nb.py",
        '- 2 * mu * S["s1"]',
        '- mu * S["s1"]',
        "laws/test_laws.py",
        "the log-likelihood has half of the cross term",
    ),
    Fault(
        "models/gaussian_nb.py",
        "squares + m1 * (settled.mean * settled.mean)[None, :] if m1 else squares",
        "squares",
        "laws/test_laws.py estimators/test_estimators.py",
        "the prior's mean is not in the sum of squares",
    ),
    Fault(
        "models/correlated.py",
        "return (s0.shape[0] if self.tied else 1) * outer(settled.mean)[None, ...]",
        "return outer(settled.mean)[None, ...]",
        "laws/test_laws.py estimators/test_estimators.py",
        "the prior of one class for that of all",
    ),
    Fault(
        "models/correlated.py",
        "C /= positive(self.masses(s0) + m2)",
        "C /= positive(self.masses(s0))",
        "laws/test_laws.py estimators/test_estimators.py",
        "covariances are divided by the mass without the prior's",
    ),
    Fault(
        "models/lda.py",
        "[:, :, None] - mu / 2) * slopes",
        "[:, :, None] - mu) * slopes",
        "models/test_contributions.py",
        "contributions are taken about a mean, not half-way",
    ),
    Fault(
        "models/correlated.py",
        "X[y == k] = X[y == k] @ L.T",
        "X[y == k] = X[y == k] @ L",
        "laws/test_laws.py",
        "samples have the factor of the covariance turned round",
    ),
    Fault(
        "models/correlated.py",
        "s2 = C * (self.masses(s0) + m2) - m2 * settled.covariance",
        "s2 = C * (self.masses(s0) + m2)",
        "laws/test_laws.py learners/test_learners.py",
        "the inverse of the covariance keeps the prior",
    ),
    Fault(
        "models/correlated.py",
        "return (1 - self.reg_param) * C + self.reg_param * eye_like(C) if",
        "return C + self.reg_param * eye_like(C) if",
        "estimators/test_estimators.py",
        "reg_param is added, not mixed in",
    ),
    Fault(
        "models/correlated.py",
        "C = (1 - self.shrinkage) * C + self.shrinkage * spread(C) * eye_like(C)",
        "C = (1 - self.shrinkage) * C + self.shrinkage * eye_like(C)",
        "estimators/test_estimators.py laws/test_laws.py",
        "shrinkage towards one in place of the mean variance",
    ),
    Fault(
        "models/conditional.py",
        "out -= 0.5 * LOG_2PI * (self.n - holes.numbers)",
        "out -= 0.5 * LOG_2PI * self.n",
        "models/test_missing_gaussian.py",
        "the density of the observed cells has the constant of all",
    ),
    Fault(
        "models/conditional.py",
        "np.add.at(second.reshape(-1), places.ravel(), scaled.ravel())",
        "pass",
        "models/test_missing_gaussian.py",
        "EM fills in means without their covariances",
    ),
    Fault(
        "models/conditional.py",
        "found.shift[0] += np.concatenate([np.zeros(0), *noise]) / units",
        "found.shift[0] += np.concatenate([np.zeros(0), *noise])",
        "models/test_missing_gaussian.py estimators/test_joint.py",
        "draws of missing cells are in other units",
    ),
    Fault(
        "models/poisson.py",
        "rows = mass + self.alpha",
        "rows = mass",
        "estimators/test_counts.py",
        "a rate is divided by the rows without the prior's",
    ),
    Fault(
        "models/poisson.py",
        "lambda x: gammaln(x + 1.0)",
        "lambda x: gammaln(x + 2.0)",
        "estimators/test_counts.py",
        "log x! is that of another number",
    ),
    Fault(
        "models/multinomial.py",
        "return self.lengths[:, None] * namespace(self.log_prob).exp(self.log_prob)",
        "return namespace(self.log_prob).exp(self.log_prob)",
        "estimators/test_counts.py laws/test_laws.py",
        "expected counts of rows of one word",
    ),
    Fault(
        "models/multinomial.py",
        "pseudo_counts(S, self.alpha) - counts",
        "pseudo_counts(S, self.alpha)",
        "estimators/test_counts.py",
        "the complement of a class contains the class",
    ),
    Fault(
        "models/bernoulli.py",
        'at_least(mass_of(S) - S["counts"] + alpha, floor)',
        'at_least(mass_of(S) - S["counts"], floor)',
        "estimators/test_counts.py",
        "zeros have no pseudo-counts",
    ),
    Fault(
        "models/augmented_nb.py",
        "counts + self.backoff * given_class[:, frame.own]",
        "counts + self.backoff",
        "models/test_categories.py laws/test_laws.py",
        "rare parents back off to a uniform distribution",
    ),
    Fault(
        "models/structure.py",
        "np.lexsort((last, first, -between[a, b]))",
        "np.lexsort((last, first, between[a, b]))",
        "estimators/test_family.py models/test_categories.py",
        "the tree of the least mutual information",
    ),
    Fault(
        "models/structure.py",
        'np.argsort(-between[i, before], kind="stable")',
        'np.argsort(between[i, before], kind="stable")',
        "estimators/test_family.py models/test_categories.py",
        "parents of the least mutual information",
    ),
    Fault(
        "models/structure.py",
        "given = np.repeat(first / both, sizes, axis=1)",
        "given = np.repeat(first, sizes, axis=1)",
        "models/test_missing_cells_nb.py",
        "mutual information given the class without the mass of the class",
    ),
    Fault(
        "models/messages.py",
        "rest = above[p] * self.below[p] / self.sent[i]",
        "rest = above[p] * self.below[p]",
        "models/test_missing_cells_nb.py",
        "a message goes back to where it came from",
    ),
    Fault(
        "models/smooth.py",
        " - np.log(frame.widths)",
        "",
        "models/test_smooth_rows.py laws/test_laws.py",
        "heights of densities are not divided by their widths",
    ),
    Fault(
        "models/smooth.py",
        "tail = -np.log1p(-u)",
        "tail = u",
        "laws/test_laws.py estimators/test_joint.py",
        "tails of samples are uniform",
    ),
    Fault(
        "models/smooth.py",
        "away = high * frame.upper[own] - low * frame.lower[own]",
        "away = high * frame.upper[own] + low * frame.lower[own]",
        "models/test_missing_cells_nb.py estimators/test_joint.py",
        "the lower tail moves the mean of a density up",
    ),
    Fault(
        "models/smooth.py",
        " + theta.log_prior - Z.beyond[:, None]",
        " + theta.log_prior",
        "laws/test_laws.py models/test_smooth_rows.py",
        "the density does not fall in its tails",
    ),
    Fault(
        "models/smooth.py",
        "beyond = (shares * (low + high)).sum(axis=1)",
        "beyond = (low + high).sum(axis=1)",
        "models/test_missing_cells_nb.py laws/test_laws.py",
        "missing cells are expected in the tails",
    ),
    Fault(
        "models/hats.py",
        "beyond += np.maximum(t[0] - x, 0.0) / low + np.maximum(x - t[-1], 0.0) / high",
        "beyond += np.maximum(t[0] - x, 0.0) / high + np.maximum(x - t[-1], 0.0) / low",
        "models/test_smooth_rows.py laws/test_laws.py",
        "the two tails of a column are exchanged",
    ),
    Fault(
        "models/product.py",
        "total[:, read] += weight * expert.contributions(part, own)",
        "total[:, read] += expert.contributions(part, own)",
        "models/test_contributions.py estimators/test_family.py",
        "contributions of experts without their weights",
    ),
    Fault(
        "models/product.py",
        "total = total + weight * (joint - possible(expert.baseline(own))[None, :])",
        "total = total + weight * joint",
        "estimators/test_family.py",
        "each expert brings its own p(y)",
    ),
    Fault(
        "models/product.py",
        "return float(sum(w * d for w, d in zip(self.weights, own, strict=True)))",
        "return float(sum(own))",
        "estimators/test_family.py",
        "degrees of freedom of experts without their weights",
    ),
    Fault(
        "models/neighbours.py",
        "lift = (M + some) / some",
        "lift = M + some",
        "models/test_neighbours_leaves.py",
        "neighbours are not compared with the share of the class",
    ),
    Fault(
        "models/neighbours.py",
        "index, distance = without(index, distance, home)",
        "index, distance = index[:, :-1], distance[:, :-1]",
        "models/test_neighbours_leaves.py",
        "a training row is among its own neighbours",
    ),
    Fault(
        "models/components.py",
        "return e, top + np.log(sums)",
        "return e, top",
        "estimators/test_family.py laws/test_laws.py",
        "the largest component stands for the sum of all",
    ),
    Fault(
        "models/mixture.py",
        "own.log_prior + np.repeat(shift, theta.sizes)",
        "own.log_prior",
        "estimators/test_joint.py",
        "other class frequencies do not reach the components",
    ),
    Fault(
        "models/mixture.py",
        "rng.choice(size, len(own), p=p / p.sum())",
        "rng.choice(size, len(own))",
        "laws/test_laws.py estimators/test_joint.py estimators/test_family.py",
        "components are drawn with equal shares",
    ),
    Fault(
        "models/leaves.py",
        "prior = self.alpha * shares",
        "prior = self.alpha",
        "models/test_neighbours_leaves.py",
        "the prior of a leaf does not know its share",
    ),
    Fault(
        "models/trees.py",
        "np.where(tree.missing_go_to_left.astype(bool), left, right)",
        "np.where(tree.missing_go_to_left.astype(bool), right, left)",
        "models/test_neighbours_leaves.py",
        "missing cells go the other way in a tree",
    ),
    Fault(
        "models/marks.py",
        "(np.count_nonzero(by_class > 0, axis=0) - 1) * (seen - 1)",
        "np.count_nonzero(by_class > 0, axis=0) * (seen - 1)",
        "models/test_marks.py",
        "the test of marks has a degree of freedom too many",
    ),
    Fault(
        "models/marks.py",
        "counts.mean(axis=0)",
        'S["s0"][:, None] / S["s0"].sum() * counts.sum(axis=0)',
        "models/test_marks.py",
        "tied marks are smoothed class by class and speak for the rare one",
    ),
    Fault(
        "models/binned.py",
        "return edges[edges > values[0]]",
        "return edges",
        "models/test_missing_cells_nb.py",
        "a bin below the least value",
    ),
    # learners, the loop, selection
    Fault(
        "learners/quasi_newton.py",
        "factor - dot(y, d) / product",
        "factor + dot(y, d) / product",
        "learners/test_quasi_newton.py",
        "a sign of the second loop",
    ),
    Fault(
        "learners/quasi_newton.py",
        "self.constant_value(constant) < good.value",
        "self.constant_value(constant) < -good.value",
        "learners/test_quasi_newton.py",
        "the class frequencies are not tried",
    ),
    Fault(
        "models/coordinates.py",
        'prior = found["s0"] - weight * p',
        'prior = found["s0"]',
        "learners/test_quasi_newton.py",
        "the gradient of the anchor by p(y) lacks the model's own share",
    ),
    Fault(
        "models/coordinates.py",
        'if not model.implements("expected_statistics"):',
        "if True:",
        "learners/test_quasi_newton.py",
        "under a prior an anchor pulls to the statistics of the data",
    ),
    Fault(
        "models/coordinates.py",
        "min=-FARTHEST_LOG",
        "min=-10.0 * FARTHEST_LOG",
        "learners/test_quasi_newton.py",
        "a table far below the others underflows",
    ),
    Fault(
        "models/composite_coordinates.py",
        "self.roots = [math.sqrt(abs(power)) for power in powers]",
        "self.roots = [abs(power) for power in powers]",
        "learners/test_quasi_newton.py",
        "the gradient of an expert has its power twice",
    ),
    Fault(
        "learners/steps.py",
        "self.lr = self.first_lr / (1 + self.epoch / 10)",
        "self.lr = self.first_lr",
        "learners/test_learners.py",
        "stochastic steps do not get shorter",
    ),
    Fault(
        "learners/steps.py",
        "if 2 * number >= len(batches) - 1:",
        "if number >= 0:",
        "learners/test_learners.py",
        "the average of an epoch includes its first half",
    ),
    Fault(
        "learners/steps.py",
        "pull = lr * self.anchor.weight * self.anchor.share",
        "pull = lr * self.anchor.weight",
        "estimators/test_streams.py",
        "a batch is pulled back as much as all rows",
    ),
    Fault(
        "learners/steps.py",
        "return risk - anchor.weight * anchor.log_likelihood(theta)",
        "return risk - anchor.log_likelihood(theta)",
        "learners/test_learners.py",
        "the monitored anchor has no weight",
    ),
    Fault(
        "learners/rc.py",
        "task.model.degrees_of_freedom(task.S) / task.S.total",
        "task.model.degrees_of_freedom(task.S) / task.engine.n_rows",
        "learners/test_learners.py",
        "the automatic anchor counts rows, not their weights",
    ),
    Fault(
        "learners/rc.py",
        "found.judged < best.judged and found.value <= first.start_value",
        "found.judged < best.judged",
        "learners/test_learners.py test_search.py",
        "a restart may be worse on the training rows than the closed form",
    ),
    Fault(
        "learners/dfe.py",
        "missing = self.lr * w * (",
        "missing = self.lr * (",
        "learners/test_learners.py",
        "online DFE ignores weights",
    ),
    Fault(
        "learners/gradient.py",
        "old + self.lr / self.total * gradient[name]",
        "old + self.lr * gradient[name]",
        "learners/test_learners.py",
        "gradient steps grow with the number of rows",
    ),
    Fault(
        "learners/rc_cv.py",
        "else self.cv_error_ + self.cv_log_loss_",
        "else self.cv_error_ - self.cv_log_loss_",
        "test_folds.py",
        "the largest log loss selects an anchor",
    ),
    Fault(
        "learners/rc_cv.py",
        "> STANDARD_ERRORS * spread",
        "> -STANDARD_ERRORS * spread",
        "test_folds.py",
        "a score that is lower by chance is preferred to the class frequencies",
    ),
    Fault(
        "learners/quasi_newton.py",
        "            self.pairs.clear()\n            self.along = self.gradient",
        "            self.pairs.clear()",
        "learners/test_quasi_newton.py",
        "a refused step goes on along a direction that is forgotten",
    ),
    Fault(
        "search.py",
        "odds[np.arange(len(y)), y] - odds @ prior",
        "odds[np.arange(len(y)), y] - odds.mean(axis=1)",
        "test_search.py",
        "labels of a coin that is not fair support a model",
    ),
    Fault(
        "loop.py",
        "accepted = new.value <= best + 1e-12 * (step.objective.scale + abs(best))",
        "accepted = new.value <= best + 1e-2 * (step.objective.scale + abs(best))",
        "learners/test_learners.py",
        "a rise by a hundredth is accepted",
    ),
    Fault(
        "loop.py",
        "if 0 < learner.n_iter_no_change <= idle:",
        "if 0 < learner.n_iter_no_change < idle:",
        "learners/test_learners.py test_search.py",
        "early stopping waits one iteration too long",
    ),
    Fault(
        "loop.py",
        "fell = best - new.value",
        "fell = abs(best)",
        "learners/test_learners.py",
        "the tolerance is compared with the risk, not with its fall",
    ),
    Fault(
        "search.py",
        "kept.scaled(mass / kept.mass)",
        "kept.scaled(1.0)",
        "test_search.py test_folds.py",
        "kept rows do not carry the weight of all",
    ),
    Fault(
        "search.py",
        "mass = task.S.total - (0.0 if others is None else others.total)",
        "mass = task.S.total",
        "test_search.py estimators/test_unlabelled.py test_folds.py",
        "kept rows carry the weight of unlabelled rows too",
    ),
    Fault(
        "search.py",
        "np.average([each[name] for each in alike], weights=masses)",
        "np.average([each[name] for each in alike])",
        "test_search.py",
        "folds of different weight count alike",
    ),
    Fault(
        "search.py",
        "wrong + (P.argmax(axis=2) != y) @ w",
        "wrong + (P.argmax(axis=2) != y).sum(axis=1)",
        "test_search.py estimators/test_risk_bayes.py",
        "held-out errors ignore weights",
    ),
    Fault(
        "search.py",
        "drawn = ((task.S.total / S.total) * S)",
        "drawn = (1.0 * S)",
        "test_search.py learners/test_learners.py",
        "a bootstrap sample of weighted rows has another total",
    ),
    # statistics, risks, objectives
    Fault(
        "statistics.py",
        "np.minimum.reduce(masses) + 0.0 * sum(sums, total)",
        "np.minimum.reduce(masses)",
        "test_statistics.py learners/test_learners.py",
        "statistics with a NaN are legal",
    ),
    Fault(
        "statistics.py",
        "<= atol + rtol * size(b[name])",
        "<= atol + rtol",
        "test_statistics.py",
        "a relative tolerance is absolute",
    ),
    Fault(
        "frames.py",
        "p = np.where(category < sizes[feature], np.exp(log_prob), 0.0)",
        "p = np.exp(log_prob)",
        "models/test_categories.py estimators/test_joint.py",
        "categories that no row has are drawn",
    ),
    Fault(
        "risks.py",
        "wrong = own < 0 if distinct else scores.argmax(axis=1) != y",
        "wrong = own < 0",
        "learners/test_learners.py estimators/test_estimators.py",
        "a tie counts as right",
    ),
    Fault(
        "risks.py",
        "np.array([w @ loss for loss in losses.values()]), w.sum())",
        "np.array([w @ loss for loss in losses.values()]), len(y))",
        "learners/test_learners.py",
        "weighted risks are divided by the number of rows",
    ),
    Fault(
        "objectives.py",
        "return super().residual(P, y) * at_labels(P, y)[:, None]",
        "return super().residual(P, y)",
        "learners/test_learners.py",
        "the residual of the soft error is that of the log loss",
    ),
    Fault(
        "objectives.py",
        "return P * (sum_of(P * costs, axis=1, keepdims=True) - costs)",
        "return sum_of(P * costs, axis=1, keepdims=True) - costs",
        "learners/test_learners.py",
        "the residual of costs lacks the posterior",
    ),
    # engines
    Fault(
        "engines/memory.py",
        "return self._weighted(times if self._w is None else times * self._w)",
        "return self._weighted(times)",
        "engines/test_engines.py test_folds.py learners/test_learners.py",
        "bootstrap samples ignore weights",
    ),
    Fault(
        "engines/memory.py",
        "np.flatnonzero(to_numpy(self._w) > 0)",
        "np.flatnonzero(to_numpy(self._w) >= 0)",
        "engines/test_engines.py test_folds.py",
        "rows without weight are split among the folds",
    ),
    Fault(
        "engines/parts.py",
        "(self.before[number][y] + rank) % self.n_folds",
        "rank % self.n_folds",
        "engines/test_engines.py",
        "folds of small blocks are not of equal size",
    ),
    Fault(
        "engines/parts.py",
        "return None, times if w is None else times * w",
        "return None, times",
        "engines/test_engines.py",
        "bootstrap samples of blocks ignore weights",
    ),
    Fault(
        "engines/recorded.py",
        "random.set_state(state)",
        "pass",
        "persistence/test_checkpoint.py",
        "a replay draws other random numbers",
    ),
    Fault(
        "engines/recorded.py",
        "rng.bit_generator.state = self._recall(",
        "self._recall(",
        "persistence/test_checkpoint.py",
        "a replay draws other batches",
    ),
    Fault(
        "engines/recorded.py",
        "if not fits(value, kind):",
        "if False:",
        "persistence/test_codec.py",
        "a record of another type is taken",
    ),
    Fault(
        "engines/recorded.py",
        "if not within:",
        "if False:",
        "persistence/test_codec.py",
        "random numbers are read beyond their buffer",
    ),
    Fault(
        "persistence/codec.py",
        "max(len(data), SMALL)",
        "len(data)",
        "persistence/test_codec.py",
        "a frame without its statistics is refused",
    ),
    # estimators
    Fault(
        "estimators/unlabelled.py",
        "return replace(task, S=S, other_rows=expected)",
        "return replace(task, S=S)",
        "estimators/test_unlabelled.py",
        "folds forget the rows without a label",
    ),
    Fault(
        "estimators/unlabelled.py",
        "P if w is None else P * w[:, None]",
        "P",
        "estimators/test_unlabelled.py",
        "rows without a label count without their weights",
    ),
    Fault(
        "estimators/joint.py",
        "as_large = density + DENSITY_ROUNDING",
        "as_large = density - DENSITY_ROUNDING",
        "estimators/test_joint.py",
        "rows as dense as a row count as less dense",
    ),
    Fault(
        "estimators/priors.py",
        "np.divide(P, known, out=np.zeros_like(P), where=known > 0)",
        "P",
        "estimators/test_joint.py",
        "the frequencies of training are not divided out",
    ),
    # tables, files
    Fault(
        "preprocessing/filling.py",
        "min(max(round(value), limits.min), limits.max)",
        "min(max(int(value), limits.min), limits.max)",
        "estimators/test_joint.py models/test_missing_cells_nb.py",
        "imputed whole numbers are cut",
    ),
    Fault(
        "preprocessing/columns.py",
        "get(value, unseen) for value in values",
        "get(value, 0) for value in values",
        "input/test_mixed_tables.py",
        "an unseen category is the first one",
    ),
    Fault(
        "preprocessing/encoder.py",
        "are_names(number, n_rows - column.n_missing)",
        "are_names(number, n_rows)",
        "input/test_mixed_tables.py",
        "identifiers with missing cells are categories",
    ),
    Fault(
        "preprocessing/columns.py",
        "return (np.floor(days) + 3) % 7",
        "return (np.floor(days) + 4) % 7",
        "input/test_mixed_tables.py",
        "weekdays are those of the next day",
    ),
    Fault(
        "preprocessing/bins.py",
        "return np.where(middle > distinct[:-1], middle, distinct[1:])",
        "return middle",
        "estimators/test_extreme_values.py",
        "adjacent numbers share a bin",
    ),
    Fault(
        "input/files/deciding.py",
        '(widths["min"] == widths["max"] and not zeros.all())',
        '(widths["min"] == widths["max"])',
        "reading/test_reading.py",
        "padded numbers are codes",
        needs=("pyarrow",),
    ),
    Fault(
        "input/files/deciding.py",
        'widths["max"] > LONG',
        "False",
        "reading/test_reading.py",
        "telephone numbers are numbers",
        needs=("pyarrow",),
    ),
    Fault(
        "input/files/deciding.py",
        "return (custom if file is None else file),",
        "return custom,",
        "reading/test_reading.py reading/test_notation.py",
        "other columns of the file do not tell the decimal sign",
        needs=("pyarrow",),
    ),
    Fault(
        "input/files/dialect.py",
        "fit = count / len(body) * clean / len(cells)",
        "fit = count / len(body)",
        "reading/test_reading.py",
        "a delimiter within cells is as good as that between them",
        needs=("pyarrow",),
    ),
    Fault(
        "persistence/npy.py",
        'order="F" if fortran else "C")',
        'order="C")',
        "persistence/test_codec.py",
        "an array in column order is read into a copy",
    ),
    Fault(
        "persistence/plain.py",
        "return [plain.isoformat(), write_zone(value.tzinfo)]",
        "return [plain.isoformat(), None]",
        "persistence/test_codec.py",
        "dates lose their time zone",
    ),
    # ONNX
    Fault(
        "onnx_export/naive_bayes.py",
        "(theta.log_prob - frame.spread(unseen))[:, index]",
        "theta.log_prob[:, index]",
        "onnx_export/test_onnx.py",
        "known categories add what unseen ones do",
        needs=("onnx", "onnxruntime"),
    ),
    Fault(
        "onnx_export/gaussians.py",
        "scores = Scores(theta.log_prior - theta.half_log_det)",
        "scores = Scores(theta.log_prior)",
        "onnx_export/test_onnx.py",
        "QDA without its determinants",
        needs=("onnx", "onnxruntime"),
    ),
    Fault(
        "onnx_export/gaussians.py",
        "weight * (part.constants - possible(expert.baseline(own)))",
        "weight * part.constants",
        "onnx_export/test_onnx.py",
        "each expert brings its own p(y)",
        needs=("onnx", "onnxruntime"),
    ),
    Fault(
        "onnx_export/trees.py",
        "step *= frame.sizes[p] + 1",
        "step *= frame.sizes[p]",
        "onnx_export/test_onnx.py",
        "joint codes of several parents overlap",
        needs=("onnx", "onnxruntime"),
    ),
    # compare
    Fault(
        "compare/scores.py",
        "/ (2 if P.shape[1] == 2 else 1)",
        "",
        "compare/test_compare.py",
        "the Brier score of two classes is not halved",
    ),
    Fault(
        "compare/scores.py",
        "value += abs(gap) * len(rows) / m",
        "value += gap * len(rows) / m",
        "compare/test_compare.py",
        "gaps of calibration of both signs cancel",
    ),
    Fault(
        "compare/numbers.py",
        "p * (1 - p) / rows + c / (4 * rows)",
        "p * (1 - p) / rows",
        "compare/test_compare.py",
        "Wilson's interval has no width at zero",
    ),
    Fault(
        "compare/drift.py",
        "adjusted = holm(np.array([p for *_, p in tested]))",
        "adjusted = np.array([p for *_, p in tested])",
        "compare/test_compare.py",
        "many columns are tested as if each were alone",
    ),
    Fault(
        "compare/repeats.py",
        "np.maximum.at(most, found // r, counts)",
        "np.add.at(most, found // r, counts)",
        "compare/test_compare.py",
        "equal rows with different labels do not contradict each other",
    ),
    Fault(
        "compare/splits.py",
        "alone = np.bincount(codes)[codes] < 2",
        "alone = np.bincount(codes)[codes] < 1",
        "compare/test_compare.py",
        "the only row of a class is held out",
    ),
]


def plant(fault: Fault, tree: Path) -> bool:
    """Put a fault into a tree; return False if its text is not there exactly once."""
    path = tree / "src" / "riskbayes" / fault.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text.count(fault.before) != 1:
        return False
    path.write_text(text.replace(fault.before, fault.after), encoding="utf-8")
    return True


def mend(fault: Fault, tree: Path) -> None:
    """Put the file of the unmutated tree back."""
    shutil.copyfile(ROOT / "src" / "riskbayes" / fault.file, tree / "src" / "riskbayes" / fault.file)


def run_room(room: str, tree: Path) -> tuple[int, str]:
    """Run the tests of a room in a tree; return the exit code and the last line, or -1 if they hang."""
    own = {
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",  # what was compiled is told apart by size and second only
        "NUMBA_CACHE_DIR": str(tree / "numba"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    files = [f"tests/{one}" for one in room.split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
    try:
        done = subprocess.run(
            command, cwd=tree, env=os.environ | own, capture_output=True, text=True, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return -1, f"not done after {MOST_SECONDS} s"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.MULTILINE)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, failed[0] if failed else lines[-1] if lines else ""


def copy_tree(to: Path) -> Path:
    """Copy what the tests read of the tree."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        elif source.exists():
            to.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, to / name)
    return to


def try_fault(fault: Fault, tree: Path) -> tuple[str, str]:
    """Plant a fault, run its room, mend it; return how it ended, and by which test."""
    if lacking(fault):
        return NOT_RUN, f"without {', '.join(lacking(fault))}"
    if not plant(fault, tree):
        return STALE, "its text is not in the file, or is there twice"
    try:
        code, last = run_room(fault.room, tree)
    finally:
        mend(fault, tree)
    return {0: SURVIVED, 1: KILLED, 2: KILLED, -1: KILLED}.get(code, NOT_RUN), last


def failing_files(faults: list[Fault], trees: Queue, jobs: int) -> Iterator[tuple[str, str]]:
    """Yield the files of tests that do not pass without a fault, or of which none runs, and why."""
    files = sorted({file for fault in faults if not lacking(fault) for file in fault.room.split()})

    def check(file: str) -> tuple[str, int, str]:
        tree = trees.get()
        try:
            return file, *run_room(file, tree)
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(jobs) as pool:
        for file, code, last in pool.map(check, files):
            if code != 0 or "passed" not in last:
                yield file, last


def lacking(fault: Fault) -> list[str]:
    """Return the packages that a fault needs and that are not installed."""
    return [name for name in fault.needs if find_spec(name) is None]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Plant faults, one at a time, and run the tests.")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that are tested at a time")
    parser.add_argument("--only", default="", help="words, with commas: faults whose file or text has one")
    parser.add_argument("--list", action="store_true", help="print the faults, run nothing")
    options = parser.parse_args(arguments)
    words = [word for word in options.only.split(",") if word]
    faults = [f for f in FAULTS if not words or any(word in f"{f.file} {f.what}" for word in words)]
    if options.list:
        for fault in faults:
            print(f"{fault.file}: {fault.what}")
        return 0
    # A shell starts commands in the background with interrupts ignored, and the tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    start, ended = time.perf_counter(), dict.fromkeys((KILLED, SURVIVED, STALE, NOT_RUN), 0)
    with tempfile.TemporaryDirectory() as folder:
        trees: Queue = Queue()
        for i in range(options.jobs):
            trees.put(copy_tree(Path(folder) / str(i)))
        failing = dict(failing_files(faults, trees, options.jobs))
        for file, why in failing.items():
            print(f"{file} does not pass without a fault: {why}", flush=True)

        def work(fault: Fault) -> tuple[str, str, float]:
            if failing.keys() & set(fault.room.split()):
                return NOT_RUN, "its room does not pass without it", 0.0
            tree, begun = trees.get(), time.perf_counter()
            try:
                return *try_fault(fault, tree), time.perf_counter() - begun
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.jobs) as pool:
            for fault, (how, last, seconds) in zip(faults, pool.map(work, faults), strict=True):
                ended[how] += 1
                print(f"{how:8}  {seconds:5.0f} s  {fault.file}: {fault.what}  ({last})", flush=True)
    counts = ", ".join(f"{number} {how}" for how, number in ended.items())
    print(f"\n{len(faults)} faults: {counts}; {time.perf_counter() - start:.0f} s")
    return int(ended[SURVIVED] + ended[STALE] + len(failing) > 0)


if __name__ == "__main__":
    sys.exit(main())
