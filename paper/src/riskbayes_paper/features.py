"""The paper's way with images: 512 features of a pretrained ResNet18. Extra `deep`: torchvision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

from riskbayes.new_files import new_files
from riskbayes.statistics import Array
from riskbayes_paper import ExperimentError
from riskbayes_paper.files import reading

SIDE = 224
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
SCALE = np.array([0.229, 0.224, 0.225], dtype=np.float32)
"""What networks trained on ImageNet expect: images of this side, and colours about this mean and scale."""

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


class Network(NamedTuple):
    """A name, and a function from images of shape (m, 3, 224, 224) to features of shape (m, n)."""

    name: str
    features: Callable[[Array], Array]


def resnet18(pretrained: bool = True, device: str = "cpu") -> Network:
    """Return ResNet18 of torchvision without its last layer, on the device "cpu" or "cuda".

    Its weights are those of ImageNet, which torchvision fetches once, or random ones.
    """
    try:
        import torch
        from torchvision import models
    except ImportError as error:
        raise ImportError(
            'ResNet18 needs torchvision. In a copy of the repository, run: pip install "./paper[deep]"'
        ) from error
    weights = models.ResNet18_Weights.IMAGENET1K_V1 if pretrained else None
    network = models.resnet18(weights=weights)
    network.fc = torch.nn.Identity()
    network = network.eval().to(device)

    def features(images: Array) -> Array:
        with torch.inference_mode():
            return network(torch.from_numpy(images).to(device)).cpu().numpy()

    # What random weights give must not pass for the paper's features.
    return Network("resnet18" if pretrained else "random resnet18", features)


def find_images(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the images of a folder, and their labels: the name of a folder for each class."""
    paths = sorted(path for path in folder.glob("*/*") if path.suffix.lower() in ENDINGS)
    if not paths:
        raise ExperimentError(f"There are no images in {str(folder)!r}: a folder for each class is needed.")
    return paths, [path.parent.name for path in paths]


def read_image(path: Path) -> Array:
    """Return an image as a network expects it: three channels, scaled."""
    from PIL import Image

    with reading(path), Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE)), dtype=np.float32) / 255
    return ((pixels - MEAN) / SCALE).transpose(2, 0, 1)


def extract(paths: Sequence[Path], network: Network, batch_size: int = 64) -> Array:
    """Return the features of images, shape (n_images, n_features); only a batch is in memory at a time."""
    starts = range(0, len(paths), batch_size)
    console = Console(stderr=True)
    parts = []
    for start in track(starts, "images", console=console, transient=True, disable=not console.is_terminal):
        images = np.stack([read_image(path) for path in paths[start : start + batch_size]])
        parts.append(network.features(images))
    return np.concatenate(parts).astype(np.float32)


def write_features(folder: Path, out: Path, network: Network) -> tuple[int, int]:
    """Write the features of a folder of images to a file of `riskbayes reproduce`; return their shape."""
    paths, labels = find_images(folder)
    X = extract(paths, network)
    out.parent.mkdir(parents=True, exist_ok=True)
    with new_files(out) as (file,):
        np.savez_compressed(file, X=X, y=np.array(labels), backbone=network.name)
    return X.shape[0], X.shape[1]
