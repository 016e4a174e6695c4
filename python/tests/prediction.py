"""profile() and simulate(): part of parallel.py."""

import json
import subprocess
import tempfile
from pathlib import Path

import torch
from torch import nn

import sluice.torch as sluice
from reference import check


def check_prediction() -> None:
    """The layers of a model with their times, and what they cost on a cluster."""
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Linear(256, 4))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.json"
        made = sluice.profile(net, torch.randn(32, 64), steps=3, path=path)
        check("layers are in order", [x["name"] for x in made["layers"]] == ["0", "2", "3"])
        check("parameters", [x["params"] for x in made["layers"]] == [16640, 65792, 1028])
        times = [x[key] for x in made["layers"] for key in ("forward_us", "backward_us")]
        check("times", all(t > 0 for t in times) and made["batch"] == 32, str(made))
        check("no gradients are left", all(p.grad is None for p in net.parameters()))
        cluster = {"hosts": 4, "bandwidth_gbps": 1, "latency_us": 20}
        trace = Path(folder) / "trace.json"
        by_file = sluice.simulate(path, cluster, "p3", trace=trace)
        at_once = sluice.simulate(made, cluster, preset="kvstore")
        check("a trace is written", "traceEvents" in trace.read_text())
        longer = by_file["iteration_us"] >= by_file["compute_us"] > 0
        check("the network costs time", longer and at_once["preset"] == "kvstore", str(by_file))
        program = Path(sluice.process._C.__file__).parents[2] / "sluice"  # in a build folder
        if program.exists():
            (Path(folder) / "four.toml").write_text(
                "hosts = 4\nbandwidth_gbps = 1\nlatency_us = 20\n"
            )
            command = [str(program), "simulate", "--json", "--preset", "p3", "--profile", "net.json"]
            said = subprocess.run(
                command + ["--cluster", "four.toml"], cwd=folder, capture_output=True, check=True
            )
            check("as the program", json.loads(said.stdout)["iteration_us"] == by_file["iteration_us"])
    for wrong in ({"preset": "p4"}, {"cluster": {"hosts": 0}}):
        try:
            sluice.simulate(**{"profile": made, "cluster": cluster, **wrong})
            check("a wrong argument is refused", False, str(wrong))
        except ValueError as error:
            check("it is explained", "p4" in str(error) or "hosts" in str(error), str(error))
