"""The engine for rows in arrays of another library (PyTorch, CuPy, JAX), on any device."""

from riskbayes.engines.memory import MemoryEngine
from riskbayes.scanners.dense import ON_DEVICE


class DeviceEngine(MemoryEngine):
    """Scans on the device of the arrays, in large chunks, for a GPU is slow at small products.

    Parameters are those of :class:`MemoryEngine`. `X`, `y` and `w` are on one device, and only the risks
    leave it.
    """

    split = ON_DEVICE
