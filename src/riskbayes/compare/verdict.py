"""The answer in sentences: how well the target can be predicted, how sure that is, and by which model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from riskbayes.compare.contenders import BOOSTING, LOGISTIC, MAJORITY
from riskbayes.compare.evidence import FEW, FEWEST_GROUPS, beyond, units_outside
from riskbayes.compare.numbers import CLEARLY, digits_of, error_interval, is_clear
from riskbayes.compare.report import Contender, Score
from riskbayes.compare.scores import METRICS, score
from riskbayes.compare.study import Study
from riskbayes.findings import Finding

FLATTERED = "It was chosen among {n} by the rows that judge it, which flatters its figures slightly."

RARE = 10.0
"""Where always answering the most frequent class is wrong on at most this percentage of the rows, the error
says little, and ranking and log loss are told first."""

WELL, FAIRLY = 0.8, 0.65
"""The least AUC of a model that ranks rows well, and fairly well."""

ALMOST = 95.0
"""The least percentage of the rows that is almost all of them."""


def verdict(study: Study, found: Sequence[Contender], findings: Sequence[Finding]) -> str:
    """Return how well the target can be predicted and how sure that is."""
    by_name = {contender.name: contender for contender in found}
    best = by_name[study.best.candidate.name]
    shown = study.evidence[best.name].beyond
    if not study.predicts:
        return " ".join([nothing(study, best), *warned(findings)])
    if not shown:
        sentence = another(study, best)
    elif "error" in shown and not (is_rare(study) and "auc" in shown):
        sentence = fewer_errors(study, best)
    elif "auc" in shown:
        sentence = f"{ranks(study, best)} {at_one_half(study, best)}"
    else:
        sentence = better_probabilities(study, best)
    return " ".join([sentence, *beside_peers(study, by_name), *warned(findings)])


def nothing(study: Study, best: Contender) -> str:
    """Return that nothing can be predicted, or nothing be said, and what so few rows could show."""
    area = best.scores.get("auc")
    sentence = (
        f"Nothing about {study.data.target!r} can be predicted from these columns: beyond chance no model "
        f"makes fewer errors than {baseline(study)}, which is wrong on {study.base_error:.3g} % "
        "of the held-out rows, has a lower log loss, or ranks rows better than a coin. "
        f"{best.name} is wrong on {interval(study, best)}"
    )
    if study.groups is not None and units_outside(study.held, study.groups) < FEWEST_GROUPS:
        sentence = (
            f"Nothing about {study.data.target!r} can be concluded from this split: it has too few groups "
            f"for a test. {best.name} is wrong on {interval(study, best)} of the held-out rows; "
            f"{always_wrong(study)}"
        )
    sentence += f", and its AUC is {plus_minus(area)} (0.5 is a coin)." if area else "."
    return sentence + few_others(study)


def few_others(study: Study) -> str:
    """Return what so few rows or groups outside the most frequent class could show; empty if many."""
    units, often = units_outside(study.held, study.groups), most_frequent(study)
    if units >= FEW:
        return ""
    shows = "only a very strong relation"
    have = "held-out row has" if units == 1 else "held-out rows have"
    have = f"{units} {have} another class than {often!r}"
    if study.groups is not None:
        held = "group of held-out rows has" if units == 1 else "groups of held-out rows have"
        have = f"{units} {held} rows of another class than {often!r}"
        shows = shows if units >= FEWEST_GROUPS else "no relation"
    return f" Only {have}: with so few, {shows} would show."


def fewer_errors(study: Study, best: Contender) -> str:
    """Return by how much the best model makes fewer errors than the majority class."""
    gain = best.gain["error"]
    removed = 100 * -value(gain) / study.base_error
    return (
        f"{study.data.target!r} can be predicted: {best.name} is wrong on {interval(study, best)} of the "
        f"held-out rows; {always_wrong(study)}. That is {removed:.0f} % fewer errors, {apart(gain)} points, "
        "beyond chance."
    )


def ranks(study: Study, best: Contender) -> str:
    """Return how well the best model ranks rows, and its log loss."""
    area = best.scores["auc"]
    little = value(area) < FAIRLY
    how = "a little better than a coin" if little else "well" if value(area) >= WELL else "fairly well"
    pairs = f"in {100 * value(area):.0f} of 100 pairs" if value(area) < 0.995 else "in almost all pairs"
    pairs = "in all pairs" if value(area) == 1 else pairs
    if len(study.data.classes) == 2:
        often = most_frequent(study)
        rare = next(text for text in study.data.texts if text != often)
        meant = f"a row of {rare!r} scores above a row of {often!r} {pairs}"
    else:
        meant = f"a row of a class gets more probability of it than a row of another class {pairs}"
    return (
        f"{study.data.target!r} can be predicted{' a little' if little else ''}: {best.name} ranks rows "
        f"{how} (AUC {plus_minus(area)}; 0.5 is a coin): {meant}. {log_losses(study, best)}."
    )


def log_losses(study: Study, best: Contender) -> str:
    """Return the log losses of the best model and of the majority class."""
    gain = value(best.gain["log_loss"])
    base = value(best.scores["log_loss"]) - gain
    worse = ", which is better: use its ranks, not its probabilities" if gain > 0 else ""
    return (
        f"Its log loss is {value(best.scores['log_loss']):.3f}; that of answering with the frequencies of "
        f"the classes is {base:.3f}{worse}"
    )


def at_one_half(study: Study, best: Contender) -> str:
    """Return how often the answers of the best model are wrong, and what a threshold of one half does."""
    often, gain = most_frequent(study), best.gain["error"]
    share = 100 * float((study.best.P.argmax(axis=1) == study.data.texts.index(often)).mean())
    wrong = f"wrong on {interval(study, best)} of the held-out rows; {always_wrong(study)}"
    if share < ALMOST:
        return f"Its answers are {wrong}{'' if is_clear(gain) else ', and the difference may be chance'}."
    two = len(study.data.classes) == 2
    almost = "always answers" if share == 100 else "almost always answers"
    return (
        f"{'At a threshold of one half' if two else 'Taken at its most probable class'} it still {almost} "
        f"{often!r}, and is {wrong}. To find other rows, {'set a lower threshold, or ' if two else ''}give "
        "the costs of mistakes to `decide`."
    )


def better_probabilities(study: Study, best: Contender) -> str:
    """Return that the log loss of the best model is lower, though it neither errs less nor ranks well."""
    return (
        f"{study.data.target!r} can be predicted a little: the probabilities of {best.name} are better than "
        f"the frequencies of the classes, by {apart(best.gain['log_loss'], 3)} of log loss, beyond chance. "
        f"{log_losses(study, best)}. It is wrong on {interval(study, best)} of the held-out rows; "
        f"{always_wrong(study)}."
    )


def another(study: Study, best: Contender) -> str:
    """Return that another model predicts the target, and the best one of riskbayes does not."""
    others = [name for name, evidence in study.evidence.items() if evidence.beyond]
    first = min(others, key=lambda name: study.choosing_score(study.trial(name)))
    areas = [study.evidence[name].area for name in (best.name, first)]
    ours, theirs = ("" if a is None else f" (AUC {plus_minus(score(a.auc, a.error))})" for a in areas)
    return (
        f"{best.name} does not predict {study.data.target!r} beyond chance{ours}: it is wrong on "
        f"{interval(study, best)} of the held-out rows; {always_wrong(study)}. Another model does: "
        f"{first}{theirs}.{few_others(study)}"
    )


def why(study: Study, found: Sequence[Contender]) -> str:
    """Return why that model is the best one, in a sentence or two."""
    ours = [c for c in found if c.kind == "riskbayes" and not c.failed]
    best, others, metric = ours[0], ours[1:], study.metric
    digits = 1 if metric == "error" else 3
    sentence = (
        f"{best.name} has the {extreme(metric)} {METRICS[metric]} of the {len(ours)} models of riskbayes, "
        f"{value(best.scores[metric]):.{digits}f}"
    )
    if others:
        sentence += f"; {others[0].name} is next, with {value(others[0].scores[metric]):.{digits}f}"
        gap = others[0].behind.get(metric)
        if gap is not None and not is_clear(gap):
            sentence += f", and the difference, {apart(gap, digits)}, may be chance"
    return f"{sentence}. {FLATTERED.format(n=len(ours))}"


def rule(study: Study) -> str:
    """Return how the best model was chosen, and what that does to its figures."""
    n = sum(trial.candidate.kind == "riskbayes" for trial in study.usable)
    return (
        f"The best model is that of riskbayes with the {extreme(study.metric)} {METRICS[study.metric]} on "
        f"the held-out rows. {FLATTERED.format(n=n)}"
    )


def extreme(metric: str) -> str:
    """Return which end of a figure is the best."""
    return "highest" if metric == "auc" else "lowest"


def beside_peers(study: Study, by_name: Mapping[str, Contender]) -> Iterator[str]:
    """Yield how logistic regression compares with the best model, and histogram boosting if it is better."""
    metric = judged_by(study)
    for name in (LOGISTIC, BOOSTING):
        peer = by_name.get(name)
        if peer is None or peer.failed or not peer.behind:
            continue
        if name == LOGISTIC or beyond(peer.behind[metric], CLEARLY):
            yield f"{compare_peer(name, peer.behind[metric], metric)}."


def compare_peer(name: str, gap: Score, metric: str) -> str:
    """Return how far a model of scikit-learn is from the best one, and whether that may be chance."""
    better, size = value(gap) < 0, apart(gap, 1 if metric == "error" else 3)
    if value(gap) == 0:
        words = f"{name.capitalize()} makes as many errors" if metric == "error" else f"{name} is as good"
    elif metric == "error":
        words = f"{name.capitalize()} makes {size} points {'fewer' if better else 'more'} errors"
    else:
        words = f"The log loss of {name} is {'lower' if better else 'higher'} by {size}"
    return words if is_clear(gap) or value(gap) == 0 else f"{words}, which may be chance"


def judged_by(study: Study) -> str:
    """Return the figure that models are compared by in words: the log loss where a class is rare."""
    return "log_loss" if is_rare(study) else "error"


def is_rare(study: Study) -> bool:
    """True if all classes but one are so rare that the error says little."""
    return study.base_error <= RARE


def warned(findings: Sequence[Finding]) -> list[str]:
    """Return a sentence on the findings that make the figures doubtful."""
    codes = list(dict.fromkeys(f"{f.code} ({f.about.name})" for f in findings if f.severity == "error"))
    return [f"Do not trust these figures before you have looked at {', '.join(codes)}."] if codes else []


def most_frequent(study: Study) -> str:
    """Return the class that the majority class answers most often."""
    P = study.trial(MAJORITY).P
    return study.data.texts[int(P.mean(axis=0).argmax())]


def always_wrong(study: Study) -> str:
    """Return the baseline and its error in words."""
    return f"{baseline(study)} is wrong on {study.base_error:.3g} %"


def baseline(study: Study) -> str:
    """Return what the majority class answers: one class always, or another one in another fold."""
    answers = study.trial(MAJORITY).P.argmax(axis=1)
    if (answers != answers[0]).any():
        return "answering the most frequent class of the training rows"
    return f"always answering {most_frequent(study)!r}"


def interval(study: Study, best: Contender) -> str:
    """Return an error with its 95 % interval."""
    error, spread = value(best.scores["error"]), best.scores["error"].error
    low, high = error_interval(error, spread, len(study.held), study.groups is not None)
    return f"{error:.1f} % (95 % interval {low:.1f} to {high:.1f})"


def apart(found: Score, digits: int = 1) -> str:
    """Return the size of a difference and its standard error, which has one digit that counts."""
    digits = digits_of([found.error], digits)
    return plus_minus(Score(abs(value(found)), found.error), digits)


def plus_minus(found: Score, digits: int = 3) -> str:
    """Return a figure and its standard error."""
    shown = f"{value(found):.{digits}f}"
    return shown if found.error is None else f"{shown} ± {found.error:.{digits}f}"


def value(found: Score) -> float:
    """Return the value of a score, which is there for every model that was fitted."""
    assert found.value is not None
    return found.value
