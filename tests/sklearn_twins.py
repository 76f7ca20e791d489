"""A pytest plugin that runs scikit-learn's own tests with our classes in the place of their twins.

`python -m pytest -p sklearn_twins --pyargs sklearn.tests.test_naive_bayes` runs those tests of a file that
use one of the seven classes below. They are ours, trained by closed form. An error or a warning that a test
expects and does not get is noted, and the test goes on: it fails at its end, with all that it missed.
"""

import types
from contextlib import contextmanager

import pytest
import sklearn.discriminant_analysis
import sklearn.naive_bayes

import riskbayes

HOMES = {
    "BernoulliNB": sklearn.naive_bayes,
    "CategoricalNB": sklearn.naive_bayes,
    "ComplementNB": sklearn.naive_bayes,
    "GaussianNB": sklearn.naive_bayes,
    "LinearDiscriminantAnalysis": sklearn.discriminant_analysis,
    "MultinomialNB": sklearn.naive_bayes,
    "QuadraticDiscriminantAnalysis": sklearn.discriminant_analysis,
}

missed: list[str] = []
"""What the running test expected and did not get."""


def by_closed_form(estimator):
    """Return a subclass with the same name and parameters; `learner` is "closed_form" by default."""
    init = estimator.__init__
    ours = types.FunctionType(init.__code__, init.__globals__, init.__name__, init.__defaults__)
    ours.__kwdefaults__ = {**init.__kwdefaults__, "learner": "closed_form"}
    return type(estimator.__name__, (estimator,), {"__init__": ours, "__module__": __name__})


def going_on(expectation):
    """Return `pytest.raises` or `pytest.warns`, noting in `missed` what does not come."""

    @contextmanager
    def expect(kind, *, match=None):
        try:
            with expectation(kind, match=match) as found:
                yield found
        except (Exception, pytest.fail.Exception):
            missed.append(f"{kind.__name__}: {match or 'any'}")

    return expect


def names_in(code):
    """Return every name that a function's code looks up, inner functions included."""
    inner = (names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*inner)


def uses_ours(item):
    """True if one of our classes is a parameter of the test, or named in a test without such a parameter."""
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    estimators = {value.__name__ for value in params if hasattr(value, "fit")}
    return bool((estimators or names_in(item.function.__code__)) & set(HOMES))


def pytest_configure():
    """Put our classes in place before a test file imports scikit-learn's."""
    for name, module in HOMES.items():
        setattr(module, name, by_closed_form(getattr(riskbayes, name)))
    pytest.raises, pytest.warns = going_on(pytest.raises), going_on(pytest.warns)


def pytest_collection_modifyitems(config, items):
    """Keep the tests that use one of our classes."""
    config.hook.pytest_deselected(items=[item for item in items if not uses_ours(item)])
    items[:] = [item for item in items if uses_ours(item)]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test to its end, then fail with what it missed; the report keeps one property for each."""
    missed.clear()
    try:
        result = yield
    except Exception as error:
        missed.append(f"{type(error).__name__}: {str(error).splitlines()[0]}")
        raise
    finally:
        pyfuncitem.user_properties += [("missed", entry) for entry in missed]
    if missed:
        pytest.fail("; ".join(missed), pytrace=False)
    return result
