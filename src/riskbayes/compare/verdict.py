"""The answer in sentences: how well the target can be predicted, how sure that is, and by which model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from riskbayes.compare.checks import BEYOND_CHANCE, CLEARLY, beyond, negated, predicts, tells
from riskbayes.compare.contenders import BOOSTING, LOGISTIC, MAJORITY
from riskbayes.compare.report import Contender, Score
from riskbayes.compare.scores import NORMAL, lift, wilson
from riskbayes.compare.study import Study
from riskbayes.findings import Finding

RULE = (
    "The best model is that of riskbayes with the least sum of error, as a share, and log loss on the "
    "held-out rows. It was chosen among {n} by the rows that judge it, which flatters its figures slightly."
)


def verdict(study: Study, found: Sequence[Contender], findings: Sequence[Finding]) -> str:
    """Return how well the target can be predicted and how sure that is."""
    by_name = {contender.name: contender for contender in found}
    best, base = by_name[study.best.candidate.name], by_name[MAJORITY]
    target = study.data.target
    counts = f"wrong on {interval(study, best.scores['error'])} of the held-out rows"
    always = f"always answering {most_frequent(study)!r} is wrong on {value(base.scores['error']):.3g} %"
    if not predicts(study):
        return (
            f"Nothing about {target!r} can be predicted from these columns: no model is better than always "
            f"answering {most_frequent(study)!r}, which is wrong on {value(base.scores['error']):.3g} % of "
            f"the held-out rows. {best.name} is {counts}."
        )
    gain = best.gain
    if beyond(gain["error"], BEYOND_CHANCE):
        removed = 100 * -value(gain["error"]) / value(base.scores["error"])
        sentence = (
            f"{target!r} can be predicted: {best.name} is {counts}; {always}. That is {removed:.0f} % fewer "
            f"errors, {apart(gain['error'])} points, beyond chance."
        )
    elif tells(study, study.best):
        raised = lift(study.best.P, study.held, study.groups)
        sentence = (
            f"{target!r} can be predicted a little: {best.name} is {counts}; {always}, and the difference "
            f"may be chance. But its probabilities tell rows apart: the true class gets {apart(raised)} "
            "points more than by chance."
        )
    else:
        sentence = (
            f"{best.name} predicts {target!r} no better than by {always_words(study)}, beyond chance: it is "
            f"{counts}; {always}. Another model does: see the table."
        )
    return " ".join([sentence, *beside_peers(by_name), *warned(findings)])


def why(study: Study, found: Sequence[Contender]) -> str:
    """Return why that model is the best one, in a sentence or two."""
    ours = [c for c in found if c.kind == "riskbayes" and not c.failed]
    best, others = ours[0], ours[1:]
    sentence = (
        f"Of the {len(ours)} models of riskbayes {best.name} has the least sum of error "
        f"({value(best.scores['error']):.1f} %) and log loss ({value(best.scores['log_loss']):.3f})"
    )
    if others:
        error, loss = others[0].behind["error"], others[0].behind["log_loss"]
        sure = any(beyond(negated(gap), CLEARLY) for gap in (error, loss))
        sentence += (
            f"; {others[0].name} is next, with {value(error):+.1f} points of error and {value(loss):+.3f} of "
            f"log loss{'' if sure else ', which may be chance'}"
        )
    return f"{sentence}. {RULE.format(n=len(ours))}"


def beside_peers(by_name: Mapping[str, Contender]) -> Iterator[str]:
    """Yield how logistic regression compares with the best model, and histogram boosting if it is better."""
    for name in (LOGISTIC, BOOSTING):
        peer = by_name.get(name)
        if peer is None or peer.failed or not peer.behind:
            continue
        gap = peer.behind["error"]
        if beyond(gap, CLEARLY):
            yield f"{name.capitalize()} makes {apart(negated(gap))} points fewer errors."
        elif name == LOGISTIC and beyond(negated(gap), CLEARLY):
            yield f"{name.capitalize()} makes {apart(gap)} points more errors."
        elif name == LOGISTIC:
            yield f"{name.capitalize()} is as good, within chance."


def warned(findings: Sequence[Finding]) -> list[str]:
    """Return a sentence on the findings that make the figures doubtful."""
    codes = list(dict.fromkeys(f"{f.code} ({f.about.name})" for f in findings if f.severity == "error"))
    return [f"Do not trust these figures before you have looked at {', '.join(codes)}."] if codes else []


def most_frequent(study: Study) -> str:
    """Return the class that the majority class answers most often."""
    P = study.trial(MAJORITY).P
    return study.data.texts[int(P.mean(axis=0).argmax())]


def always_words(study: Study) -> str:
    """Return the baseline in words."""
    return f"always answering {most_frequent(study)!r}"


def interval(study: Study, found: Score) -> str:
    """Return an error with its 95 % interval: Wilson's, or the normal one where rows come in groups."""
    m, error = len(study.held), value(found)
    low, high = (100 * end for end in wilson(round(error * m / 100), m))
    if study.groups is not None and found.error is not None:
        low, high = max(0.0, error - NORMAL * found.error), min(100.0, error + NORMAL * found.error)
    return f"{error:.1f} % (95 % interval {low:.1f} to {high:.1f})"


def apart(found: Score, digits: int = 1) -> str:
    """Return the size of a difference and its standard error."""
    size = f"{abs(value(found)):.{digits}f}"
    return size if found.error is None else f"{size} ± {found.error:.{digits}f}"


def value(found: Score) -> float:
    """Return the value of a score, which is there for every model that was fitted."""
    assert found.value is not None
    return found.value
