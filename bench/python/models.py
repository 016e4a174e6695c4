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


def of_torchvision(name):
    """As `sluice train --model NAME`."""
    def make():
        import torchvision
        return getattr(torchvision.models, name)()
    return make


class GptBlock(nn.Module):
    """Causal attention and two linear layers, each behind a normalisation."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """124.6 million parameters, 1000 classes over the mean of a sequence of 256. Samples are real numbers, as those of synthetic data,
    and become words here."""

    def __init__(self, vocabulary=50257, width=768, blocks=12, heads=12, length=256):
        super().__init__()
        self.vocabulary = vocabulary
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*[GptBlock(width, heads) for _ in range(blocks)])
        self.head = nn.Linear(width, 1000)

    def forward(self, samples):
        words = (samples.flatten(1).abs() * 1e4).long() % self.vocabulary
        return self.head(self.blocks(self.words(words) + self.places).mean(1))


# By name: how to make it, the shape of a sample, the classes.
MODELS = {"resnet18": (resnet18, (3, 64, 64), 1000), "tiny50": (tiny50, (16,), 16), "mlp": (mlp, (1, 28, 28), 10),
          "resnet50": (of_torchvision("resnet50"), (3, 224, 224), 1000),
          "vgg16": (of_torchvision("vgg16"), (3, 224, 224), 1000),
          "gpt": (Gpt, (1, 16, 16), 1000)}


def make(name, batch):
    """A model, samples and labels."""
    maker, shape, classes = MODELS[name]
    torch.manual_seed(1)
    return maker(), torch.randn(batch, *shape), torch.randint(classes, (batch,))
