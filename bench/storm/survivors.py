"""The storm of presets whose workers go on when another one is lost: trainings one after the other, until its time is over. `launch` starts a
lost worker again, and it joins the others, also if it led them. Servers hold the parameters: with one of them the training ends, and `launch`
starts it again with all workers."""
import dataclasses
import json
import random
import sys
import threading
import time
from pathlib import Path

from faults import AGAIN_WITHIN_S, ENDING, ENDS_WITHIN_S, KINDS, LASTS_S, Fault, Run, Weather
import lab
from table import markdown

SERVERS = {"asp": 1, "ssp": 1, "easgd": 1, "gosgd": 0, "ad-psgd": 0, "noloco": 0, "local-sgd": 0, "diloco": 0, "streaming-diloco": 0, "sparseloco": 0,
           "post-local-sgd": 0}  # on hosts of their own
SETTINGS = {"post-local-sgd": ["--synchronous-first", 20]}  # in which it needs all workers
PAUSE_S = 5  # of the survivors, at most
NEAR = 0.03  # the accuracy that a training may have less than a calm one with all workers, or with those that are left
LEFT = 2  # workers of the smaller calm training
RESTARTS = 1000  # of a worker: the storm decides when it ends
FIRST_STEPS = 20  # in which a training gathers way


def training(args):
    servers = ["--servers", SERVERS[args.preset]] if SERVERS[args.preset] else []
    return ["train", "--preset", args.preset, *SETTINGS.get(args.preset, []), *servers, "--batch", 8, "--lr", args.lr, "--kernels", "native", "--evaluate-every", 0, "--iterations",
            args.iterations, "--json", "--trace"]


@dataclasses.dataclass
class Loss(Fault):
    said_s: float = None  # after the fault: that the others go on
    back_s: float = None  # likewise: that it has joined them again
    pause_s: float = None  # the longest time in which one of them made no step
    traced_at: float = None  # when it was made, by the clock of the trace


def plan(args, draw, server_too):
    """The faults of one training, one after the other."""
    kinds = (args.kinds or "kill,stop,cut,slow").split(",")
    lethal = [kind for kind in kinds if kind in ENDING]
    workers = args.hosts - SERVERS[args.preset]
    if lethal and server_too and workers < args.hosts:
        yield Loss(draw.choice(lethal), draw.randrange(workers, args.hosts))
    while True:
        kind = draw.choice(kinds)
        yield Loss(kind, draw.randrange(args.hosts if kind == "slow" else workers))


def endure(run, weather, fault, serves):
    fault.iteration = run.iteration()
    former = run.records()
    fault.at = run.now()
    weather.begin(fault)
    if fault.kind == "slow":
        time.sleep(LASTS_S)
        weather.end(fault)
        if run.goes_on(fault) and run.said(fault.at, "was lost"):
            fault.wrong = "a rank was taken for lost"
        return
    lift = threading.Timer(LASTS_S if fault.kind == "cut" else 0, lambda: weather.end(fault))
    lift.start()
    if serves:
        run.ends(fault)
        run.begins_again(fault, former)
    else:
        said = run.wait(lambda: run.said(fault.at, f"rank {fault.rank}", "was lost", "the others go on"), ENDS_WITHIN_S)
        if said:
            fault.said_s, fault.culprit = said[0] - fault.at, said[1]
            run.goes_on(fault)
            back = run.wait(lambda: run.said(fault.at, f"rank {fault.rank} is back"), AGAIN_WITHIN_S)
            if back:
                fault.back_s = back[0] - fault.at
            elif not run.ended() and not fault.wrong:
                fault.wrong = "it did not come back"
        else:
            fault.wrong = f"nobody said within {ENDS_WITHIN_S} s that the others go on"
    lift.join()


def of_last_start(faults, again_s):
    """Those after which the training was not started again, with all workers."""
    restarted = [i for i, fault in enumerate(faults) if again_s(fault) is not None]
    return faults[restarted[-1] + 1:] if restarted else faults


def steps_in(trace):
    """By host: when its worker had done each of its iterations, in seconds of the trace."""
    ends = {}
    with open(trace) as lines:
        for line in lines:
            if '"name":"backward ' in line:
                span = json.loads(line.rstrip(",\n"))
                steps = ends.setdefault(span["pid"] - 1, {})  # a trace counts hosts from 1
                iteration = span["args"]["iteration"]
                steps[iteration] = max(steps.get(iteration, 0), (span["ts"] + span["dur"]) / 1e6)
    return {host: sorted(steps.values()) for host, steps in ends.items()}


def longest_pause(hosts, begin, end):
    """Of a worker between two of its steps, if the pause lies in this time at least in part."""
    return max((after - before for steps in hosts for before, after in zip(steps, steps[1:]) if after > begin and before < end), default=0.0)


def note_pauses(made, trace):
    """Those after each fault since the last start, of workers that were not lost since then. Returns the longest of the time before, too."""
    faults = of_last_start(made, lambda fault: fault.again_s)
    joined = {fault.rank for fault in faults if fault.said_s is not None}
    hosts = [steps for host, steps in steps_in(trace).items() if host not in joined]
    times = [fault.traced_at for fault in faults] + [float("inf")]
    for fault, until in zip(faults, times[1:]):
        fault.pause_s = longest_pause(hosts, fault.traced_at, until)
    return longest_pause(hosts, max(steps[FIRST_STEPS] for steps in hosts), times[0])


def weathered(args, draw, weather, number, server_too):
    """One training; what came of it."""
    folder = Path(f"training-{number}")
    folder.mkdir()
    run = Run(args, training(args), folder, RESTARTS)
    servers = range(args.hosts - SERVERS[args.preset], args.hosts)
    made = []
    origin = None  # of the record's clock
    for fault in plan(args, draw, server_too):
        run.wait(lambda: run.iteration() >= FIRST_STEPS, AGAIN_WITHIN_S)
        origin = run.record_begin() if origin is None else origin
        run.wait(lambda: False, draw.uniform(args.pause / 2, args.pause))
        if run.ended() or run.iteration() >= args.iterations:
            break
        try:
            endure(run, weather, fault, fault.rank in servers)
        except (OSError, lab.Failure) as error:
            fault.wrong = str(error)
        fault.traced_at = fault.at - origin
        origin = origin if fault.again_s is None else None
        if run.ended() and run.job.returncode == 0 and fault.said_s is None:
            break  # the training ended meanwhile
        made.append(fault)
        run.report(fault, f"training {number}, ")
    summary = run.summary()
    calm_pause = note_pauses(made, run.record() / "trace.json") if summary else None
    if not summary:
        print(run.said_since(made[-1].at if made else 0), file=sys.stderr)
    return {"faults": [dataclasses.asdict(fault) for fault in made], "code": run.job.returncode, "ran_s": run.now(), "calm_pause_s": calm_pause,
            "lost": summary.get("lost_ranks", []), "accuracy": summary.get("test_accuracy"), "loss": summary.get("test_loss"), "lines": run.lines}


def storm(args):
    """On the head of the lab."""
    draw = random.Random(args.seed)
    weather = Weather(args)
    begin = time.monotonic()
    trainings = []
    while not trainings or time.monotonic() - begin < 60 * args.minutes:
        trainings.append(weathered(args, draw, weather, len(trainings), len(trainings) % 2 == 1))
    Path("storm.json").write_text(json.dumps({"trainings": trainings, "ran_s": time.monotonic() - begin}))


def calm(args):
    """The same training with which nobody interferes, with all workers and with those that are left in the end."""
    command = [args.build / "sluice", *training(args), "--log-level", "error", "--workers"]
    done = [json.loads(lab.execute([*command, workers])) for workers in (args.hosts - SERVERS[args.preset], LEFT)]
    return {"accuracy": [one["test_accuracy"] for one in done], "loss": [one["test_loss"] for one in done]}


def fault_of_training(one, calm):
    """What is not as it must be at its end."""
    last = of_last_start(one["faults"], lambda fault: fault["again_s"])
    gone = {fault["rank"]: fault["back_s"] is None for fault in last if fault["said_s"] is not None}
    expected = sorted(rank for rank in gone if gone[rank])
    if one["code"] != 0:
        return f"it ended with code {one['code']}"
    if one["lost"] != expected:
        return f"its summary says that ranks {one['lost']} were lost"
    if one["accuracy"] < min(calm["accuracy"]) - NEAR:
        return "its accuracy is not that of a calm training"
    return ""


def judge(result, calm):
    """Prints the tables; whether all is as it must be."""
    number = lambda value: "" if value is None else f"{value:.1f}"
    rows = [["training", "fault", "rank", "iteration", "loss known after s", "back after s", "survivors' pause s", "ended after s", "trains again after s", ""]]
    faults = []
    for i, one in enumerate(result["trainings"]):
        for fault in one["faults"]:
            faults.append(fault)
            if not fault["wrong"] and fault["said_s"] is not None and (fault["pause_s"] or 0) > PAUSE_S:
                fault["wrong"] = f"a survivor paused for more than {PAUSE_S} s"
            rows.append([i, KINDS[fault["kind"]], fault["rank"], fault["iteration"], number(fault["said_s"]), number(fault["back_s"]),
                         number(fault["pause_s"]),
                         number(fault["ended_s"]), number(fault["again_s"]),
                         fault["wrong"] or ("went on" if fault["again_s"] is None else "restarted")])
    print(markdown(rows))
    print()
    rows = [["training", "seconds", "lost ranks", "test accuracy", "longest pause without a fault, s", ""]]
    wrong = [fault for fault in faults if fault["wrong"]]
    for i, one in enumerate(result["trainings"]):
        why = fault_of_training(one, calm)
        wrong += [why] if why else []
        rows.append([i, f"{one['ran_s']:.0f}", " ".join(map(str, one["lost"])), "" if one["accuracy"] is None else f"{one['accuracy']:.4f}",
                     number(one["calm_pause_s"]), why or "ended"])
    print(markdown(rows))
    lost = [fault for fault in faults if fault["said_s"] is not None]
    print(f"\n{len(faults)} faults in {len(result['trainings'])} trainings and {result['ran_s']:.0f} s; {len(lost)} workers lost, known after at most "
          f"{max((fault['said_s'] for fault in lost), default=0):.1f} s, {sum(fault['back_s'] is not None for fault in lost)} of them back after at most "
          f"{max((fault['back_s'] or 0 for fault in lost), default=0):.1f} s, survivors' pause at most "
          f"{max((fault['pause_s'] or 0 for fault in lost), default=0):.1f} s; "
          f"{sum(fault['again_s'] is not None for fault in faults)} restarts, training again after at most "
          f"{max((fault['again_s'] or 0 for fault in faults), default=0):.1f} s; accuracy of calm trainings "
          f"{calm['accuracy'][0]:.4f} with all workers, {calm['accuracy'][1]:.4f} with {LEFT}")
    return not wrong
