"""A learner of your own: RC whose steps have momentum, S <- S + lr v with v <- dS + beta v."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score

from riskbayes import RC, MixedNB
from riskbayes.learners.steps import FixedStep
from riskbayes.objectives import LogLoss


class MomentumStep(FixedStep):
    beta, velocity = 0.5, None

    def propose(self, good):
        self.velocity = good.scan.dS if self.velocity is None else good.scan.dS + self.beta * self.velocity
        return good.fitted.S.plus(self.lr, self.velocity)


class Momentum(RC):
    name = "momentum"

    def begin(self, task):
        return MomentumStep(LogLoss(), "log_loss", self.lr)


if __name__ == "__main__":
    X, y = load_breast_cancer(return_X_y=True)
    for learner in ("closed_form", RC.paper(), Momentum()):
        losses = cross_val_score(MixedNB(learner=learner), X, y, scoring="neg_log_loss")
        print(learner, losses.mean().round(3))
