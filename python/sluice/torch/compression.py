"""How gradients travel."""


class Compression:
    """For the argument `compression` of DistributedOptimizer, as in Horovod, and of the others."""

    #: As they are.
    none = "none"
    #: The upper 16 bits of each number (bfloat16, not IEEE half precision): half of the bytes.
    fp16 = "fp16"
    #: The nearest bfloat16: as many bytes, and half the error.
    bf16 = "bf16"
    #: A byte each, with one scale for many: a quarter of the bytes.
    quantise8 = "quantise8"
    #: 4 bits each. What that loses is added to what is sent next time (error feedback).
    quantise4 = "quantise4"
    #: Likewise 2 bits: up, down or neither.
    quantise2 = "quantise2"


_CODECS = {
    Compression.none: "none",
    Compression.fp16: "truncate16",
    Compression.bf16: "bf16",
    Compression.quantise8: "quantise8",
    Compression.quantise4: "quantise4",
    Compression.quantise2: "quantise2",
}


def codec_of(compression: str) -> str:
    """Its name in `sluice train`."""
    if compression not in _CODECS:
        names = ", ".join(f"Compression.{name}" for name in _CODECS)
        raise ValueError(f"compression is {compression!r}, expected one of {names}")
    return _CODECS[compression]
