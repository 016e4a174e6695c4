#!/usr/bin/env python3
"""Writes golden.json: what the codecs make of some values, by a short reference in PyTorch.

    tests/codecs/golden/make_golden.py > tests/codecs/golden/golden.json
"""
import json

import torch


def bits(values):
    return values.view(torch.int32)


def bf16(values):
    return values.to(torch.bfloat16).to(torch.float32)


def truncate16(values):
    return (bits(values) & ~0xFFFF).view(torch.float32)


def quantise(values, width):
    """All values in steps of the largest, which keeps 17 significant bits."""
    largest_code = 2 ** (width - 1) - 1
    exact = values.abs().max() / largest_code
    step = (bits(exact.reshape(1)) & ~0x7F).view(torch.float32)
    return torch.round(values * (1 / step)) * step


def error_feedback(gradients, codec):
    """What arrives in each iteration, and what is left at the end."""
    residual = torch.zeros_like(gradients[0])
    arrived = []
    for gradient in gradients:
        residual = residual + gradient
        arrived.append(codec(residual))
        residual = residual - arrived[-1]
    return {"arrived": [a.tolist() for a in arrived], "residual": residual.tolist()}


def top_k_block(values, kept):
    """The largest values of a block, in two levels of magnitude; zeros for the others."""
    chosen = values.abs().topk(min(kept, len(values))).indices.sort().values
    magnitudes = values[chosen].abs().double()
    high = magnitudes >= magnitudes.mean()
    levels = torch.zeros_like(magnitudes)
    for half in (high, ~high):
        if half.any():
            levels[half] = magnitudes[half].mean()
    sent = torch.zeros_like(values)
    sent[chosen] = levels.float().to(torch.bfloat16).float() * values[chosen].sign()
    return sent


def top_k(values, block, kept):
    return torch.cat([top_k_block(part, kept) for part in values.split(block)])


def decayed_feedback(gradients, block, kept, decay):
    """SparseLoCo: what each round sends, and what stays at the end."""
    residual = torch.zeros_like(gradients[0])
    arrived = []
    for gradient in gradients:
        residual = decay * residual + gradient
        arrived.append(top_k(residual, block, kept))
        residual = residual - arrived[-1]
    return {"block": block, "kept": kept, "decay": decay,
            "arrived": [a.tolist() for a in arrived], "residual": residual.tolist()}


def deep_gradient(gradients, momentum, k):
    """Deep Gradient Compression: momentum correction, accumulation and factor masking."""
    velocity = torch.zeros_like(gradients[0])
    residual = torch.zeros_like(gradients[0])
    sent = []
    for gradient in gradients:
        velocity = momentum * velocity + gradient
        residual = residual + velocity
        chosen = residual.abs().topk(k).indices.sort().values
        sent.append({"positions": chosen.tolist(), "values": residual[chosen].tolist()})
        residual[chosen] = 0
        velocity[chosen] = 0
    return {"momentum": momentum, "k": k, "sent": sent, "residual": residual.tolist()}


def main():
    torch.manual_seed(1)
    gradients = [torch.randn(100) ** 3 for _ in range(3)]
    values = gradients[0]
    print(json.dumps({
        "gradients": [g.tolist() for g in gradients],
        "decoded": {
            "bf16": bf16(values).tolist(),
            "truncate16": truncate16(values).tolist(),
            "quantise8": quantise(values, 8).tolist(),
            "quantise4": quantise(values, 4).tolist(),
            "quantise2": quantise(values, 2).tolist(),
        },
        "feedback": {
            "bf16": error_feedback(gradients, bf16),
            "quantise4": error_feedback(gradients, lambda v: quantise(v, 4)),
            "quantise2": error_feedback(gradients, lambda v: quantise(v, 2)),
        },
        "dgc": deep_gradient(gradients, 0.5, 5),
        "top-k": decayed_feedback(gradients, 32, 6, 0.75),
    }))


if __name__ == "__main__":
    main()
