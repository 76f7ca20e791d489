"""Features of made images: through a network of three lines, and through ResNet18 with random weights."""

import sys

import numpy as np
import pytest
from click.testing import CliRunner

from riskbayes.cli import main
from riskbayes_paper import datasets, features

Image = pytest.importorskip("PIL.Image", reason="pillow reads the images")


def mean_colour(images):
    assert images.shape[1:] == (3, 224, 224)
    return images.mean(axis=(2, 3))


STUB = features.Network("stub", mean_colour)


@pytest.fixture
def images(tmp_path):
    """Three red and two blue ones, of several sizes and kinds."""
    for label, colour, kinds in (
        ("red", (255, 0, 0), ("png", "jpg", "PNG")),
        ("blue", (0, 0, 255), ("png", "bmp")),
    ):
        (tmp_path / "images" / label).mkdir(parents=True)
        for i, kind in enumerate(kinds):
            Image.new("RGB", (20 + i, 30), colour).save(tmp_path / "images" / label / f"{i}.{kind}")
    (tmp_path / "images" / "red" / "notes.txt").write_text("no image")
    return tmp_path / "images"


def test_images_and_labels(images, tmp_path):
    _, labels = features.find_images(images)
    assert labels == ["blue", "blue", "red", "red", "red"]
    with pytest.raises(ValueError, match="a folder for each class"):
        features.find_images(tmp_path)


def test_colours_are_scaled_as_for_imagenet(images):
    red = features.read_image(images / "red" / "0.png")
    expected = (np.array([1, 0, 0]) - features.MEAN) / features.SCALE
    assert red[:, 0, 0] == pytest.approx(expected, abs=1e-5)


def test_grey_images_have_three_channels(tmp_path):
    Image.new("L", (28, 28), 128).save(tmp_path / "grey.png")
    assert features.read_image(tmp_path / "grey.png").shape == (3, 224, 224)


def test_batches_do_not_matter(images):
    paths, _ = features.find_images(images)
    assert features.extract(paths, STUB, 2) == pytest.approx(features.extract(paths, STUB, 5))


def test_features_are_loaded_again(images, tmp_path):
    assert features.write_features(images, tmp_path / "mnist.npz", STUB) == (5, 3)
    loaded = datasets.load("mnist", tmp_path)
    assert loaded.X.shape == (5, 3)
    assert loaded.y.tolist() == [0, 0, 1, 1, 1]
    assert loaded.stand_in == "stub stand-in"
    features.write_features(images, tmp_path / "cifar10.npz", STUB._replace(name="resnet18"))
    assert datasets.load("cifar10", tmp_path).stand_in == ""


def test_command(images, tmp_path, monkeypatch):
    monkeypatch.setattr(features, "resnet18", lambda device: STUB)
    target = tmp_path / "yearbook.npz"
    result = CliRunner().invoke(main, ["reproduce", "features", str(images), "--out", str(target)])
    assert result.exit_code == 0, result.output
    assert "5 images, 3 features" in result.stdout
    assert datasets.load("yearbook", tmp_path).X.shape == (5, 3)


def test_without_torchvision(images, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    result = CliRunner().invoke(
        main, ["reproduce", "features", str(images), "--out", str(tmp_path / "x.npz")]
    )
    assert result.exit_code == 1
    assert result.stderr == (
        'Error: ResNet18 needs torchvision. In a copy of the repository, run: pip install "./paper[deep]"\n'
    )
    assert not (tmp_path / "x.npz").exists()


def test_resnet18_with_random_weights(images):
    pytest.importorskip("torchvision", reason="the extra deep is not installed")
    network = features.resnet18(pretrained=False)
    X = features.extract(features.find_images(images)[0], network)
    assert X.shape == (5, 512)
    assert np.isfinite(X).all()
    assert X[2] == pytest.approx(X[4], abs=1e-4)  # both plain red
    assert network.name != "resnet18"
