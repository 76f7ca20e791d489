"""Parameters of estimators and learners, declared once: as annotated attributes of their class."""

from __future__ import annotations

from dataclasses import Field, field, make_dataclass
from inspect import get_annotations
from numbers import Integral, Real
from typing import Annotated, Any, TypeVar, dataclass_transform, get_origin

from sklearn.utils._param_validation import Interval

Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
NotNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Flag = Annotated[bool, "boolean"]

T = TypeVar("T", bound=type)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def declared(kind: T) -> T:
    """Make the `__init__` and the constraints of a class, a class decorator.

    Parameters are the attributes of the class itself that are annotated by `Annotated`, with their type and
    the constraints that scikit-learn checks. The module must not postpone its annotations.
    """
    return with_parameters(kind, kw_only=False)


def with_parameters(kind: Any, kw_only: bool) -> Any:
    """Make the same; with `kw_only` parameters are keyword-only, but for defaults `field(kw_only=False)`."""
    own = vars(kind)
    hints = {name: hint for name, hint in get_annotations(kind).items() if get_origin(hint) is Annotated}
    given = [(name, hint.__origin__, own[name]) for name, hint in hints.items()]
    made = make_dataclass(kind.__name__, given, eq=False, repr=False, kw_only=kw_only)
    kind.__init__ = made.__init__  # type: ignore[misc]
    for name in [name for name, value in own.items() if isinstance(value, Field)]:
        delattr(kind, name)  # it is set by `__init__`, or by `fit`
    kind._parameter_constraints = {name: list(hint.__metadata__) for name, hint in hints.items()}
    return kind
