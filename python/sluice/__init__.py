"""Sluice: data-parallel training over slow networks. For PyTorch: ``import sluice.torch as sluice``."""

__version__ = "0.1.0"
