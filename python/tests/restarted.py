"""A script that is killed and goes on by itself:

    sluice launch -n 2 --max-restarts 1 -- python3 restarted.py --checkpoint FOLDER

The last process of the first start kills itself in mid-training. Prints the iteration from which the script went on, and whether it ended
with the bits of a loop that was never stopped.
"""

import argparse
import os
import signal

import torch

import sluice.torch as sluice
from reference import joined_batch, loss_of, make_net, own_part

STEPS = 12
KILLED_AT = 8


def train(folder: str) -> torch.nn.Module:
    net = make_net()
    optimizer = sluice.DistributedOptimizer(
        torch.optim.SGD(net.parameters(), 0.05, momentum=0.9), net.named_parameters(), preset="p3"
    )
    begin = sluice.load_checkpoint(folder, net=net, optimizer=optimizer) if folder else 0
    if folder and sluice.rank() == 0:
        print("began with iteration", begin, flush=True)
    for step in range(begin, STEPS):
        optimizer.zero_grad()
        loss_of(net, own_part(joined_batch(step))).backward()
        optimizer.step()
        if folder and (step + 1) % 3 == 0:
            sluice.save_checkpoint(folder, step + 1, net=net, optimizer=optimizer)
        last = sluice.rank() == sluice.size() - 1
        if folder and step == KILLED_AT and last and os.environ["SLUICE_RESTART"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
    optimizer.wait()
    return net


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", required=True)
    torch.set_num_threads(1)
    sluice.init()
    restarted, calm = train(parser.parse_args().checkpoint), train("")
    same = all(torch.equal(a, b) for a, b in zip(restarted.parameters(), calm.parameters()))
    if sluice.rank() == 0:
        print("the same bits" if same else "OTHER BITS", flush=True)


main()
