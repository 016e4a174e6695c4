"""A small GPT that learns to write like a text, letter by letter:

mpirun -np 2 --bind-to none python3 gpt.py [--text FILE] [--steps N] [--preset NAME] [--sync-every N]
"""

import argparse
import contextlib
import math
from pathlib import Path
from typing import Any, ContextManager, Tuple

import torch
import torch.nn.functional as F
from torch import nn

import sluice.torch as sluice

CONTEXT = 64
WIDTH = 64
BATCH = 16


class Block(nn.Module):
    """Attention to earlier letters, then a small net for each letter."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.before_net = nn.LayerNorm(WIDTH)
        self.net = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, later: torch.Tensor) -> torch.Tensor:
        y = self.before_attention(x)
        x = x + self.attention(y, y, y, attn_mask=later, need_weights=False)[0]
        return x + self.net(self.before_net(x))


class Gpt(nn.Module):
    """Predicts the next letter at every place; the embedding and the output share their weight."""

    def __init__(self, letters: int, blocks: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters, WIDTH)
        self.places = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, letters, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.output.weight = self.embedding.weight

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        length = text.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.embedding(text) + self.places[:length]
        for block in self.blocks:
            x = block(x, later)
        return self.output(self.norm(x))


def draw(text: torch.Tensor, generator: torch.Generator) -> Tuple[torch.Tensor, torch.Tensor]:
    begins = torch.randint(0, len(text) - CONTEXT - 1, (BATCH,), generator=generator).tolist()
    rows = torch.stack([text[begin : begin + CONTEXT + 1] for begin in begins])
    return rows[:, :-1], rows[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
    parser.add_argument("--text", type=Path, default=default)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--preset", default="p3")
    parser.add_argument("--sync-every", type=int, default=1, help="more than 1: DiLoCo's local steps")
    settings = parser.parse_args()

    sluice.init()
    torch.manual_seed(1)
    letters = settings.text.read_text()
    alphabet = sorted(set(letters))
    text = torch.tensor([alphabet.index(letter) for letter in letters])
    model = Gpt(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / settings.steps))
    )
    exchange: ContextManager[Any]
    if settings.sync_every > 1:
        exchange = sluice.DiLoCo(
            model, optimizer, sync_every=settings.sync_every, preset=settings.preset
        )
    else:
        exchange = contextlib.nullcontext()
        optimizer = sluice.DistributedOptimizer(
            optimizer, named_parameters=model.named_parameters(), preset=settings.preset
        )
        sluice.broadcast_parameters(model.state_dict(), root_rank=0)

    own = torch.Generator().manual_seed(sluice.rank())
    with exchange:
        for step in range(settings.steps):
            given, wanted = draw(text, own)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(given).flatten(0, 1), wanted.flatten())
            loss.backward()
            if step % 50 == 0 or step == settings.steps - 1:
                mean = sluice.allreduce(loss.detach()).item()
                if sluice.rank() == 0:
                    print(f"step {step}: {mean:.3f}, {math.exp(mean):.1f} letters to choose from", flush=True)
            optimizer.step()
            scheduler.step()
    if sluice.rank() == 0:
        assert mean < math.log(len(alphabet)), "it has learned nothing"


main()
