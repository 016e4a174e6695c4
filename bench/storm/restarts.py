"""The storm of presets whose workers need all others: one training, which every loss of a process ends and `launch` starts again."""
import dataclasses
import json
import random
import re
import threading
import time
from pathlib import Path

from faults import AGAIN_WITHIN_S, KINDS, LASTS_S, PASSING, Fault, Run, Weather
import lab
from table import markdown

ALL_REDUCE = {"wfbp", "mg-wfbp", "p3-allreduce", "ar-sgd", "single", "d-sync", "pipe-sgd"}


def training(args):
    # Another collective sums in another order, and would be chosen on threads.
    collective = ["--collective", "ring"] if args.preset in ALL_REDUCE else []
    return ["train", "--preset", args.preset, *collective, "--batch", 8, "--kernels", "native", "--evaluate-every", 0,
            "--iterations", args.iterations, "--json"]


def endure(run, weather, fault):
    """Makes the fault and sees what comes of it."""
    fault.iteration = run.iteration()
    former = run.records()
    fault.at = run.now()
    weather.begin(fault)
    if fault.kind in PASSING:
        refused = False  # a checkpoint
        if fault.kind == "full":
            refused = run.wait(lambda: run.said(fault.at, "was not written"), AGAIN_WITHIN_S)  # said when the next one is due
        else:
            time.sleep(LASTS_S)
        weather.end(fault)
        if run.goes_on(fault) and fault.kind == "full" and not refused:
            fault.wrong = "no checkpoint was due, or it was written"
        return
    lift = threading.Timer(LASTS_S if fault.kind == "cut" else 0, lambda: weather.end(fault))
    lift.start()
    run.ends(fault)
    again = run.begins_again(fault, former)
    lift.join()
    if again:
        resumed = [re.search(r"after (\d+) iterations", line) for at, line in run.lines if at > fault.at and "resuming from" in line]
        fault.lost = fault.iteration - (int(resumed[-1].group(1)) if resumed else 0)


def storm(args):
    """On the head of the lab."""
    draw = random.Random(args.seed)
    kinds = (args.kinds or ",".join(KINDS)).split(",")
    faults = [Fault(kinds[i % len(kinds)], draw.randrange(args.hosts)) for i in range(args.faults)]
    draw.shuffle(faults)
    kept = args.inside / "kept"
    run = Run(args, [*training(args), "--checkpoint", kept, "--checkpoint-every", args.every, "--keep", 2])
    weather = Weather(args)
    made = []
    for fault in faults:
        # The first fault waits for the first checkpoint.
        run.wait(lambda: any(kept.glob("iteration-*")), AGAIN_WITHIN_S)
        run.wait(lambda: False, draw.uniform(args.pause / 2, args.pause))
        if run.ended():
            break
        try:
            endure(run, weather, fault)
        except (OSError, lab.Failure) as error:
            fault.wrong = str(error)
        if run.wait(run.ended, 0.5) and run.job.returncode == 0:
            break  # the training ended meanwhile
        made.append(fault)
        run.report(fault)
    summary = run.summary()
    Path("storm.json").write_text(json.dumps({
        "faults": [dataclasses.asdict(fault) for fault in made], "code": run.job.returncode, "ran_s": run.now(),
        "parameters_hash": summary.get("parameters_hash"), "loss": summary.get("loss"), "lines": run.lines}))


def calm(args):
    """The same training, with which nobody interferes."""
    done = json.loads(lab.execute([args.build / "sluice", *training(args), "--workers", args.hosts, "--log-level", "error"]))
    return {key: done[key] for key in ("parameters_hash", "loss")}


def judge(result, calm):
    """Prints the table; whether all is as it must be."""
    number = lambda value: "" if value is None else f"{value:.1f}"
    rows = [["fault", "rank", "iteration", "ended after s", "trains again after s", "iterations lost", ""]]
    for fault in result["faults"]:
        rows.append([KINDS[fault["kind"]], fault["rank"], fault["iteration"], number(fault["ended_s"]), number(fault["again_s"]),
                     fault["lost"], fault["wrong"] or ("went on" if fault["again_s"] is None else "restarted")])
    print(markdown(rows))
    same = all(result[key] == calm[key] for key in calm)
    ended = [fault for fault in result["faults"] if fault["again_s"] is not None]
    wrong = [fault for fault in result["faults"] if fault["wrong"]]
    print(f"{len(result['faults'])} faults in {result['ran_s']:.0f} s, {len(ended)} restarts; ended after at most "
          f"{max((fault['ended_s'] or 0 for fault in ended), default=0):.1f} s, training again after at most "
          f"{max((fault['again_s'] for fault in ended), default=0):.1f} s, at most {max((fault['lost'] for fault in ended), default=0)} iterations lost; "
          f"parameters and loss are {'those' if same else 'NOT those'} of a calm run")
    return same and not wrong
