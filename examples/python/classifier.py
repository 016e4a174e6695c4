"""A classifier of clothes (Fashion-MNIST, Debian: dataset-fashion-mnist):

mpirun -np 2 --bind-to none python3 classifier.py [--data FOLDER] [--samples N] [--epochs N] [--preset NAME]
"""

import argparse
import gzip
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import sluice.torch as sluice


def read_idx(path: Path) -> torch.Tensor:
    """Numbers of one byte in the IDX format."""
    data = gzip.open(path).read()
    dimensions = data[3]
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(dimensions)]
    return torch.frombuffer(bytearray(data[4 + 4 * dimensions :]), dtype=torch.uint8).view(shape)


def read(folder: Path, part: str) -> TensorDataset:
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz").float().div(255).unsqueeze(1)
    return TensorDataset(images, read_idx(folder / f"{part}-labels-idx1-ubyte.gz").long())


def make_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 5 * 5, 100), nn.ReLU(), nn.Linear(100, 10),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--preset", default="p3")
    settings = parser.parse_args()

    sluice.init()
    torch.manual_seed(1)
    every = read(settings.data, "train")
    data = TensorDataset(*(tensor[: settings.samples] for tensor in every.tensors))
    sampler: "DistributedSampler[int]" = DistributedSampler(data, sluice.size(), sluice.rank())
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    model = make_net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    optimizer = sluice.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), preset=settings.preset
    )
    sluice.broadcast_parameters(model.state_dict(), root_rank=0)

    for epoch in range(settings.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        # Each process tests its part; the statistics of batches are those of rank 0.
        sluice.broadcast_parameters(dict(model.named_buffers()), root_rank=0)
        model.eval()
        images, labels = (t[sluice.rank() :: sluice.size()][:1000] for t in read(settings.data, "t10k").tensors)
        with torch.no_grad():
            right = (model(images).argmax(1) == labels).float().mean()
        accuracy = sluice.allreduce(right).item()
        if sluice.rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.3f}, test accuracy {100 * accuracy:.1f} %", flush=True)
    assert accuracy > 0.5, "it has learned too little"


main()
