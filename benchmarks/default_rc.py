"""Which setting should `learner="rc"` be? Held-out errors on the paper's 15 tabular sets.

Splits are `train_test_split(test_size=.25, random_state=0..7)`; sets above 8000 rows are cut to 8000 by
a fixed seed; bins, scales and priors see training rows only. Candidates were compared on splits 0 to 2;
what was chosen is judged on splits 3 to 7. Every fit is a row of `benchmarks/results/default_rc.csv`.

    RISKBAYES_DATA=<folder> python benchmarks/default_rc.py            # fit, then print
    python benchmarks/default_rc.py --print                            # print what is there
    python benchmarks/default_rc.py --print --doc                      # and write it into doc/default.md
"""

import numpy as np
from rich.console import Console
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from study import Part, Study, Unit, markdown, print_table, spread, write_between

import riskbayes
from riskbayes.learners import DFE, GD, RC, RCCV, TM, ClosedForm
from riskbayes.preprocessing import KMeansBins

DECIDE, JUDGE = range(3), range(3, 8)


def models(n: int) -> dict:
    """The models. 'QDA, prior': 20 n rows' worth of half the pooled covariance, half its diagonal."""
    shrunk = riskbayes.QuadraticDiscriminantAnalysis(covariance_strength=20 * n, diagonal_mix=0.5)
    return {
        "NB": make_pipeline(KMeansBins(), riskbayes.CategoricalNB(alpha=1, class_alpha=1)),
        "QDA, prior": make_pipeline(shrunk),
        "QDA": make_pipeline(riskbayes.QuadraticDiscriminantAnalysis(prior=None)),
        "GaussianNB": make_pipeline(riskbayes.GaussianNB(prior=None)),
        "LDA": make_pipeline(riskbayes.LinearDiscriminantAnalysis(prior=None)),
    }


CANDIDATES = {
    **{
        f"fixed, g={g}": RC(step="fixed", monitor="objective", generative_weight=g)
        for g in (0, 0.03, 0.1, 0.3, "auto")
    },
    **{f"adaptive, g={g}": RC(step="adaptive", generative_weight=g) for g in (0, 0.03, 0.1, 0.3)},
    **{
        f"adaptive soft error, g={g}": RC(objective="soft_error", step="adaptive", generative_weight=g)
        for g in (0, 0.1)
    },
}
"""Settings compared on the first splits only."""

LEARNERS = {
    "closed form": ClosedForm(),
    "RC.paper": RC.paper(),
    "rc (default)": RC(),
    "TM": TM(),
    "GD": GD(),
    "DFE": DFE(),
    "RCCV": RCCV(random_state=0),
}
NAMES = {
    "NB": "categorical NB",
    "QDA, prior": "QDA with a prior",
    "QDA": "QDA by ML",
    "GaussianNB": "Gaussian NB",
    "LDA": "LDA",
}
"""What the page calls the models."""
ONLY = {"DFE": {"NB"}, "RCCV": {"NB", "QDA, prior"}}
PEERS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "hist. gradient boosting": HistGradientBoostingClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
}


class DefaultRC(Study):
    """Models by learners, and peers."""

    name, splits = "default_rc", (*DECIDE, *JUDGE)
    figures = ("error", "brier", "calibration_error", "log_loss", "n_iter", "seconds")
    methods = (
        *(f"peers | {peer}" for peer in PEERS),
        *(
            f"{model} | {learner}"
            for model in models(1)
            for learner in (*LEARNERS, *CANDIDATES)
            if model in ONLY.get(learner, {model})
        ),
    )

    def units(self) -> list[Unit]:
        return [u for u in super().units() if u.split in DECIDE or u.parts[1] not in CANDIDATES]

    def make(self, method: str, part: Part):
        model, learner = method.split(" | ")
        if model == "peers":
            return clone(PEERS[learner])
        clf = models(part.X.shape[1])[model]
        clf[-1].set_params(learner=clone((LEARNERS | CANDIDATES)[learner]))
        return clf

    def show(self) -> None:
        """Mean error over sets; the paired difference to the closed form, its standard error over splits."""
        heads = (
            *("model", "learner", "error %", "below closed form", "better", "worse", "worst set"),
            *("Brier", "calib. error", "scans", "seconds"),
        )
        for title, splits in (
            ("splits 0 to 2, on which the choice was made", DECIDE),
            ("splits 3 to 7, fresh", JUDGE),
            ("splits 0 to 7, all of them", range(DECIDE.start, JUDGE.stop)),
        ):
            rows, found = [], dict.fromkeys(u.method for u in self.records if u.split == splits[-1])
            for method in found:
                model, learner = method.split(" | ")
                error = 100 * self.grid(method, "error", splits)
                by_split = error.mean(axis=0)
                cells = [model, learner, f"{error.mean():.2f} ± {spread(by_split):.2f}"]
                if model == "peers":
                    cells += ["", "", "", ""]
                else:
                    gap = error - 100 * self.grid(f"{model} | closed form", "error", splits)
                    by_set, by_split = gap.mean(axis=1), gap.mean(axis=0)
                    errors = gap.std(axis=1, ddof=1) / np.sqrt(len(splits))
                    worst = int(np.argmax(by_set - np.maximum(1.0, errors)))
                    mark = "!" if by_set[worst] > max(1.0, errors[worst]) else ""
                    cells += [
                        f"{-gap.mean():.2f} ± {spread(by_split):.2f}",
                        f"{(by_set < -0.1).sum()}",
                        f"{(by_set > 0.1).sum()}",
                        f"{self.sets[worst]} {by_set[worst]:+.2f} ± {errors[worst]:.2f}{mark}",
                    ]
                ends = (("brier", 3), ("calibration_error", 3), ("n_iter", 0), ("seconds", 2))
                cells += [f"{self.grid(method, f, splits).mean():.{digits}f}" for f, digits in ends]
                rows.append(cells)
            print_table(f"Held out, {len(self.sets)} sets, {title}", heads, rows, 170)
        Console(width=170).print(
            "better, worse: sets whose mean error is lower or higher by more than 0.1. worst set: the "
            "largest mean difference to the closed form, ± its standard error over splits; '!' where it is "
            "more than one point and more than that error. scans, seconds: mean of a fit, one thread."
        )

    def lines(self) -> list[str]:
        """The table of doc/default.md, and what it says of sets and of probabilities."""
        rows = [
            [
                f"{name}, {title}",
                *(self.mean(f"{model} | {learner}", splits) for learner in LEARNERS),
            ]
            for model, name in NAMES.items()
            for title, splits in (("fresh", JUDGE), ("all eight", range(DECIDE.start, JUDGE.stop)))
        ]
        peers = "; ".join(f"{peer} {self.mean(f'peers | {peer}', JUDGE)}" for peer in PEERS)
        fresh = ("error", "brier", "calibration_error")
        fell = "; ".join(
            f"{NAMES[model]}: Brier score {before[1]:.3f} to {after[1]:.3f}, calibration error "
            f"{before[2]:.3f} to {after[2]:.3f}"
            for model in NAMES
            for before, after in [
                [
                    [self.grid(f"{model} | {learner}", figure, JUDGE).mean() for figure in fresh]
                    for learner in ("closed form", "rc (default)")
                ]
            ]
        )
        worse = "; ".join(
            f"`{name}`, {title}: {self.worse_than_closed_form(learner, splits) or 'none'}"
            for learner, name in (("rc (default)", '"rc"'), ("RCCV", '"rc_cv"'), ("TM", '"tm"'))
            for title, splits in (("fresh", JUDGE), ("all eight", range(DECIDE.start, JUDGE.stop)))
        )
        return [
            *markdown(("model, splits", *LEARNERS), rows),
            "",
            f"On the fresh splits the peers have: {peers}.",
            "",
            "**Where it is worse than the closed form**, by more than one point and more than a standard "
            f"error over splits: {worse}.",
            "",
            f'**Probabilities.** Of the closed form and of `"rc"`, on the fresh splits. {fell}.',
        ]

    def mean(self, method: str, splits) -> str:
        """The mean error in percent; blank where not all sets and splits were fitted."""
        found = 100 * self.grid(method, "error", splits).mean()
        return "" if np.isnan(found) else f"{found:.2f}"

    def worse_than_closed_form(self, learner: str, splits) -> str:
        """Models and sets on which a learner is worse."""
        found = []
        for model in NAMES:
            gap = 100 * (
                self.grid(f"{model} | {learner}", "error", splits)
                - self.grid(f"{model} | closed form", "error", splits)
            )
            for name, own in zip(self.sets, gap, strict=True):
                if own.mean() > max(1.0, spread(own)):
                    found.append(f"{NAMES[model]} on {name} (+{own.mean():.2f} ± {spread(own):.2f})")
        return ", ".join(found)


if __name__ == "__main__":
    study = DefaultRC()
    parser = study.parser()
    parser.add_argument("--doc", action="store_true", help="write the page of the documentation, too")
    given = parser.parse_args()
    study.main(given)
    if given.doc:
        write_between("default.md", "default_rc", study.lines())
