"""Write the sets of points of `riskbayes explore`: python tests/explore/make_sets.py."""

import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris, make_moons

import riskbayes.explore

FILE = Path(riskbayes.explore.__file__).parent / "templates" / "sets.json"


def make_sets():
    """The sets by name: what they are, their columns, points (x, y, class), and settings that suit them."""
    rng = np.random.default_rng(28)
    iris = load_iris()
    X, y = make_moons(90, noise=0.22, random_state=28)
    signs = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]).repeat(20, axis=0)
    xor = 1.6 * signs + rng.normal(size=(80, 2))
    centres = np.array([[0, 0], [2.2, 0.6], [9, -3.5]]).repeat([40, 32, 8], axis=0)
    far = centres + rng.normal(size=(80, 2))
    return {
        "far": described("A class with a far group", ["x", "y"], far, np.repeat([0, 1], 40), model="lda"),
        "iris": described(
            "Iris, two columns",
            iris.feature_names[:2],
            iris.data[:, :2],
            iris.target,
            model="lda",
            learner="adaptive",
        ),
        "xor": described(
            "Exclusive or", ["x", "y"], xor, np.repeat([0, 1], 40), model="qda", learner="adaptive"
        ),
        "moons": described("Two moons", ["x", "y"], X, y, model="gnb", learner="adaptive"),
        "toy": described(
            *("The paper's toy", ["x", "y"], np.array([[0, 0], [1, 0], [4, 0]]), np.array([0, 1, 1])),
            **{"model": "toy", "learner": "fixed", "lr": 0.5},
        ),
    }


def described(title, columns, X, y, **settings):
    """One set; three digits after the point are those that a link keeps."""
    points = [[*map(float, row), int(k)] for row, k in zip(np.round(X, 3), y, strict=True)]
    return {"title": title, "columns": list(columns), "settings": settings, "points": points}


def as_text():
    """The sets as JSON, one a line."""
    lines = [f'"{name}": {json.dumps(value, ensure_ascii=False)}' for name, value in make_sets().items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(as_text(), encoding="utf-8")
