#!/usr/bin/env python3
"""Exports a small model for Fashion-MNIST as TorchScript, for Sluice to train:

    examples/export_model.py cnn cnn.pt
    sluice train --model cnn.pt --data fashion-mnist --save trained

    examples/export_model.py lstm lstm.pt
    sluice train --model lstm.pt --data fashion-mnist --save trained

Any module will do that takes a batch of samples and returns a row of scores for each: write it as
usual, script it, save it. Sluice starts from the parameters in the file. It trains those with
requires_grad, which must be of type float.

On Debian: apt-get install python3-torch, and run this with /usr/bin/python3.
"""
import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Cnn(nn.Module):
    """Takes images of 1 x 28 x 28, the size of Fashion-MNIST."""

    def __init__(self, classes: int = 10):
        super().__init__()
        # Sluice exchanges layers in the order of their use, not of their registration.
        self.head = nn.Linear(32 * 7 * 7, classes)
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm = nn.BatchNorm2d(32)

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.norm(self.conv2(x))), 2)
        return self.head(x.flatten(1))


class Lstm(nn.Module):
    """Reads the same images row by row: 28 steps of 28 features."""

    def __init__(self, width: int = 64, classes: int = 10):
        super().__init__()
        # One module per layer: an nn.LSTM with two layers would be a single operator, which needs
        # the parameters of both at once.
        self.lower = nn.LSTM(28, width, batch_first=True)
        self.upper = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x, _ = self.lower(images.squeeze(1))
        x, _ = self.upper(x)
        return self.head(x[:, -1])


MODELS = {"cnn": Cnn, "lstm": Lstm}


def main():
    parser = argparse.ArgumentParser(description="Export a model as TorchScript.")
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("file", help="file to write, for sluice train --model")
    parser.add_argument("--seed", type=int, default=1, help="seed of the initial parameters")
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.jit.script(MODELS[arguments.model]()).save(arguments.file)


if __name__ == "__main__":
    main()
