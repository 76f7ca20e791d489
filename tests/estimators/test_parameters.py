"""Parameters are declared once: signatures, constraints and docstrings are made of the same lines."""

import re
from ast import literal_eval
from inspect import Parameter, signature
from typing import Annotated

import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils._param_validation import InvalidParameterError, StrOptions

import riskbayes
from riskbayes import learners
from riskbayes.estimators.parameters import Strength, estimator
from riskbayes.models import LDAModel

public = [getattr(riskbayes, name) for name in riskbayes.__all__]
LEARNERS = [getattr(learners, name) for name in learners.__all__]
KINDS = [kind for kind in public if isinstance(kind, type) and issubclass(kind, ClassifierMixin)]


def documented(kind: type) -> dict[str, str]:
    """Return what a docstring says of each parameter's type and default; as in a twin, of some, nothing."""
    section = re.split(r"\n\n    (?:Attr|Ref|Exam)", kind.__doc__.split("Parameters\n    ----------\n")[1])[0]
    entries = re.findall(r"^    (\w[\w, ]*?)(?: : (.*))?$", section, flags=re.MULTILINE)
    return {name: said for names, said in entries for name in names.split(", ")}


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_documented_and_checked(kind):
    said, arguments = documented(kind), signature(kind).parameters
    assert set(said) == set(arguments) == set(kind._parameter_constraints)
    assert "{" not in re.sub(r"\{[^}]*\}, default", "", kind.__doc__.split("Attributes")[0])
    given = {"model": LDAModel()} if kind is riskbayes.GenerativeClassifier else {}
    for name, argument in arguments.items():
        if said[name] and argument.default is not Parameter.empty:
            assert literal_eval(said[name].split("default=")[1]) == argument.default, name
        value = "no such value" if argument.annotation is not str else 0
        if name not in ("learner", "categorical_features"):  # these may be any name
            with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter"):
                kind(**given | {name: value})._validate_params()


@pytest.mark.parametrize("kind", [kind for kind in LEARNERS if signature(kind).parameters])
def test_every_parameter_of_a_learner_is_documented_and_checked(kind):
    said, arguments = documented(kind), signature(kind).parameters
    assert set(said) == set(arguments) == set(kind._parameter_constraints)
    for place, (name, argument) in enumerate(arguments.items()):
        assert literal_eval(said[name].split("default=")[1]) == argument.default, name
        value, defaults = object(), {own: other.default for own, other in arguments.items()}
        found = kind(*list(defaults.values())[:place], value)  # by position, too
        assert found.get_params() == defaults | {name: value}
        with pytest.raises(InvalidParameterError, match=f"The '{name}' parameter"):
            found._validate_params()


@pytest.mark.parametrize("kind", KINDS)
def test_a_method_is_looked_up_in_few_classes(kind):
    assert len(kind.__mro__) <= 9 + 3 * issubclass(kind, TransformerMixin)


def test_estimators_of_ones_own_are_declared_alike():
    @estimator
    class Own(BaseEstimator):
        """An estimator.

        Parameters
        ----------
        alpha : float, default=1.0
            The strength.
        kind : {"a", "b"}, default="a"
            The kind.
        """

        alpha: Strength = 1.0
        kind: Annotated[str, StrOptions({"a", "b"})] = "a"
        fitted_: float

    assert Own(alpha=2.0).get_params() == {"alpha": 2.0, "kind": "a"}
    assert list(signature(Own).parameters) == ["alpha", "kind"]
    with pytest.raises(InvalidParameterError, match="'kind' parameter"):
        Own(kind="c")._validate_params()
