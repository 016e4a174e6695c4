"""A script for PyTorch's DDP: a classifier of points. ddp_script.diff makes it one for Sluice."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1)
points = torch.rand(1024, 2) * 2 - 1
labels = ((points * points).sum(1) < 0.6).long()
data = TensorDataset(points, labels)
sampler = DistributedSampler(data, num_replicas=size, rank=rank)
loader = DataLoader(data, batch_size=32, sampler=sampler)

net = nn.Sequential(nn.Linear(2, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
model = DistributedDataParallel(net)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

for epoch in range(6):
    sampler.set_epoch(epoch)
    for samples, targets in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    accuracy = (model(points).argmax(1) == labels).float().mean().item()
if rank == 0:
    print(f"accuracy {accuracy:.3f}", os.environ.get("RUN_NAME", ""))
    assert accuracy > 0.9
