"""The training soft error that RC reaches: the paper's rule against the natural gradient of the soft error.

`RC(objective="soft_error", step="adaptive", generative_weight=0)` against `RC.paper()`, at most 64 scans
each, on all rows of the paper's 15 tabular sets (in-train): naive Bayes by ML in five bins, and QDA by ML.
Run: RISKBAYES_DATA=<folder of csv.gz files> python benchmarks/soft_error.py
"""

from study import Part, Study, print_table

from riskbayes import CategoricalNB, QuadraticDiscriminantAnalysis
from riskbayes.learners import RC
from riskbayes.preprocessing import KMeansBins

LEARNERS = {
    "paper": RC.paper(),
    "soft error": RC(objective="soft_error", step="adaptive", generative_weight=0.0),
}


class SoftError(Study):
    """Models by learners, on all rows: there are no splits."""

    name, splits, most_rows, figures = "soft_error", (0,), None, ("soft_error",)
    n_shared = 1
    methods = tuple(
        f"{model} | {learner}" for model in ("NB", "QDA") for learner in ("closed form", *LEARNERS)
    )

    def fit(self, methods, part: Part) -> dict[str, dict]:
        (X, y), model, found = self.data(part.set), methods[0].split(" | ")[0], {}
        clf = CategoricalNB(alpha=0) if model == "NB" else QuadraticDiscriminantAnalysis(prior=None)
        X = KMeansBins().fit_transform(X) if model == "NB" else X
        for name, learner in LEARNERS.items():
            history = clf.set_params(learner=learner).fit(X, y).history_
            path = history["soft_error"][history["accepted"]]
            found[f"{model} | {name}"] = {"soft_error": path[-1]}
        return found | {f"{model} | closed form": {"soft_error": history["soft_error"][0]}}

    def show(self) -> None:
        heads = ("data set", *(method.replace(" |", ",") for method in self.methods))
        found = {method: self.grid(method, "soft_error")[:, 0] for method in self.methods}
        cells = zip(self.sets, *found.values(), strict=True)
        rows = [[name, *(f"{error:.6f}" for error in errors)] for name, *errors in cells]
        print_table("Training soft error (in-train)", heads, rows, 130)
        for model in ("NB", "QDA"):
            g = found[f"{model} | paper"] - found[f"{model} | soft error"]
            lower, higher = (g > 1e-6).sum(), (g < -1e-6).sum()
            print(f"{model}: lower on {lower}, tied on {len(g) - lower - higher}, higher on {higher}")


if __name__ == "__main__":
    SoftError().main()
