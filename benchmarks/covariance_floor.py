"""How small may calibration make a covariance, and what stands in where the rows do not determine it?

Mean held-out error in percent and log loss over the paper's 15 tabular sets, splits 0 to 2, sets above 8000
rows cut to 8000. `floor`: the least share of its closed form that calibration leaves each class in every
direction (`covariance_floor`). `share`: what of the pooled covariance stands in for directions that the rows
of a class do not determine; the library takes all of it.

    RISKBAYES_DATA=<folder> python benchmarks/covariance_floor.py    # prints results/covariance_floor.txt
"""

from collections.abc import Iterator
from dataclasses import dataclass

from study import Part, Study, print_table

from riskbayes import GenerativeClassifier
from riskbayes.learners import RC, TM, ClosedForm
from riskbayes.models import GaussianNBModel, LDAModel, QDAModel

FLOORS = (0.1, 1e-2, 1e-3, 1e-4, 1e-8)
SHARES = (1.0, 0.1, 1e-2, 1e-4)


@dataclass(frozen=True)
class SharedQDAModel(QDAModel):
    """QDA with a share of the pooled covariance where the rows of a class do not determine theirs."""

    share: float = 1.0

    def completion(self, *args):
        """A share of what the model adds."""
        found, missing = super().completion(*args)
        return None if found is None else self.share * found, missing


def settings(n: int) -> dict[str, tuple]:
    """Model and learner by their names, floor and share, for n columns."""
    return {" | ".join(map(str, key)): (model, learner) for *key, model, learner in each_setting(n)}


def each_setting(n: int) -> Iterator[tuple]:
    """Yield names of model and learner, floor and share, model and learner."""
    rc, paper = RC(), RC.paper()
    for share in SHARES:
        yield "QDA", "closed form", None, share, SharedQDAModel(share=share), ClosedForm()
        yield "QDA", "rc", 1e-2, share, SharedQDAModel(share=share), rc
    for floor in FLOORS:
        shrunk = QDAModel(covariance_floor=floor, covariance_strength=20 * n, diagonal_mix=0.5)
        yield "QDA", "rc", floor, 1.0, QDAModel(covariance_floor=floor), rc
        yield "QDA", "RC.paper", floor, 1.0, QDAModel(covariance_floor=floor), paper
        yield "QDA", "TM", floor, 1.0, QDAModel(covariance_floor=floor), TM()
        yield "QDA, prior", "rc", floor, 1.0, shrunk, rc
        yield "LDA", "rc", floor, 1.0, LDAModel(covariance_floor=floor), rc
        yield "GaussianNB", "rc", floor, 1.0, GaussianNBModel(covariance_floor=floor), rc


class CovarianceFloor(Study):
    """Floors and shares by models and learners."""

    name, splits, figures, methods = "covariance_floor", range(3), ("error", "log_loss"), tuple(settings(1))

    def make(self, method: str, part: Part) -> GenerativeClassifier:
        return GenerativeClassifier(*settings(part.X.shape[1])[method])

    def show(self) -> None:
        heads = ("model", "learner", "floor", "share", "error %", "log loss")
        rows = []
        for method in self.methods:
            error, loss = (self.grid(method, figure).mean() for figure in self.figures)
            model, learner, floor, share = method.split(" | ")
            floor, share = floor.replace("None", ""), f"{float(share):g}"
            rows.append([model, learner, floor, share, f"{100 * error:.2f}", f"{loss:.3f}"])
        print_table("Held out, splits 0 to 2", heads, rows, 100)


if __name__ == "__main__":
    CovarianceFloor().main()
