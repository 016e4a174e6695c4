"""A script for Horovod: a classifier of points. horovod_script.diff makes it one for Sluice."""

import horovod.torch as hvd
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

hvd.init()
torch.manual_seed(1)
points = torch.rand(1024, 2) * 2 - 1
labels = ((points * points).sum(1) < 0.6).long()
data = TensorDataset(points, labels)
sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
loader = DataLoader(data, batch_size=32, sampler=sampler)

model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)

hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

for epoch in range(10):
    sampler.set_epoch(epoch)
    for samples, targets in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()
    scheduler.step()

with torch.no_grad():
    right = (model(points).argmax(1) == labels).float().mean()
accuracy = hvd.allreduce(right, name="accuracy").item()
if hvd.rank() == 0:
    print(f"accuracy {accuracy:.3f}")
    assert accuracy > 0.9
