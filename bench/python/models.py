"""The models of the measurements, and batches for them."""
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, width_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential()
        if stride != 1 or width_in != width:
            self.shortcut = nn.Sequential(nn.Conv2d(width_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.shortcut(x))


def resnet18():
    """ResNet-18 for ImageNet, as `sluice train --model resnet18`."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    width_in = 64
    for width, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(width_in, width, stride))
        width_in = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def tiny50():
    """50 layers of 16 x 16."""
    return nn.Sequential(*[nn.Linear(16, 16) for _ in range(50)])


def mlp():
    """As `sluice train --model mlp`, MNIST-MLP."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 10))


# By name: how to make it, the shape of a sample, the classes.
MODELS = {"resnet18": (resnet18, (3, 64, 64), 1000), "tiny50": (tiny50, (16,), 16), "mlp": (mlp, (1, 28, 28), 10)}


def make(name, batch):
    """A model, samples and labels."""
    maker, shape, classes = MODELS[name]
    torch.manual_seed(1)
    return maker(), torch.randn(batch, *shape), torch.randint(classes, (batch,))
