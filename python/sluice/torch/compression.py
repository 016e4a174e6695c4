"""How gradients travel."""


class Compression:
    """For the argument `compression` of DistributedOptimizer, as in Horovod."""

    #: As they are.
    none = "none"
    #: The upper 16 bits of each number (bfloat16, not IEEE half precision): half of the bytes.
    fp16 = "fp16"


def is_half(compression: str) -> bool:
    """Whether numbers travel in 16 bits."""
    if compression not in (Compression.none, Compression.fp16):
        raise ValueError("compression must be Compression.none or Compression.fp16")
    return compression == Compression.fp16
