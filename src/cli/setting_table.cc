#include "cli/setting_table.h"

#include <cstdint>

#include "data/idx.h"
#include "drivers/processes/carrier.h"
#include "lab/plan.h"
#include "optimizers/optimizer.h"
#include "optimizers/rate_schedule.h"
#include "torch/torch_learner.h"

namespace sluice::cli {

std::vector<Setting> model_settings() {
  return {
      {"model", kTrain, Form::text(), "lenet",
       "model to train: a name from \"sluice models\", a TorchScript file such as net.pt, or "
       "replay:PROFILE, which sleeps for the times of a profile instead of computing"},
      {"model", kEvaluate, Form::text(), "lenet",
       "model to evaluate: a name from \"sluice models\", or a TorchScript file"},
      {"model", kProfile, Form::text(), nullptr,
       "model to profile: a name from \"sluice models\", or a TorchScript file"},
      {"train", kSimulate, Form::on_or_off(), false,
       "train the model for real on virtual workers: accuracy against epochs and virtual seconds"},
      {"model", kCompare, Form::text(), "lenet",
       "model to train: a name from \"sluice models\", or a TorchScript file such as net.pt; with "
       "--real also replay:PROFILE"},
      {"model", kSimulate, Form::text(), "lenet",
       "with --train: a name from \"sluice models\", or a TorchScript file such as net.pt"},
      {"profile", kVirtual, Form::text(), "",
       "JSON file with the layers and their times, or the name of a profile that comes with "
       "Sluice, such as p4000/resnet50; with --train by default h200/MODEL"},
      {"time-scale", kRuns, Form::number(0, 1e6), 1.0,
       "replay and simulate: multiply the times of the profile by this"},
      {"param-scale", kRuns, Form::number(1e-9, 1e3), 1.0,
       "replay and simulate: multiply the parameter counts of the profile by this"},
      {"init", kRuns, Form::text(), "",
       "parameters to start with: a safetensors file that has them by name, the folder of --save, "
       "or a checkpoint"},
      {"init", kEvaluate, Form::text(), "",
       "parameters to evaluate: a safetensors file that has them by name, the folder of --save, or "
       "a checkpoint; by default those with which a training begins"},
      {"device", kRuns | kProfile | kEvaluate, Form::text(), "auto",
       "where to compute: cpu, cuda (all GPUs in turn) or cuda:N; auto: cuda if there is a GPU"},
      {"precision", kRuns | kProfile | kEvaluate, Form::word(words_of(kPrecisionNames)), "fp32",
       "what forward and backward passes compute in; bf16: mixed precision (autocast), with "
       "parameters, gradients and updates in float32"},
      {"loss", kRuns | kProfile | kEvaluate, Form::word(words_of(kLossNames)), "cross-entropy",
       "what a model from a file minimises: cross-entropy of its scores; mse of its outputs, with "
       "real targets; module: its forward(samples, targets) returns its loss"},
      {"kernels", kTrain | kProfile, Form::word(words_or("auto", kKernelsNames)), "auto",
       "how a CPU computes; auto: measure, and take what is clearly faster"},
      {"kernels", kVirtual, Form::word(words_or("auto", kKernelsNames)), "native",
       "with --train: how a CPU computes; auto: measure, and take what is clearly faster, so that "
       "another run may differ in its last bits"},
      {"kernels", kEvaluate, Form::word(words_of(kKernelsNames)), "native",
       "how a CPU computes; the last bits of the loss depend on it"},
      {"list", kStudy, Form::on_or_off(), false, "list the studies"},
      {"quick", kStudy, Form::on_or_off(), false,
       "run the short form, which shows that the study works and not what the paper shows"},
      {"recorded", kStudy, Form::on_or_off(), false,
       "run nothing; take the data that come with Sluice"},
      {"threads", kVirtual | kStudy, Form::integer(0, 1024), 0,
       "with --train: threads that compute the workers' gradients; with --sweep: simulations at a "
       "time; without influence on the results; 0: one per core"},
  };
}

std::vector<Setting> data_settings() {
  return {
      {"data", kRuns | kEvaluate,
       Form::word({"fashion-mnist", "coloured-clothes", "cifar10", "cifar100", "images", "text",
                   "characters", "arrays", "synthetic"}),
       "fashion-mnist",
       "data set; coloured-clothes: Fashion-MNIST in ten colours, for nets that take CIFAR-100; "
       "images: files train/CLASS/*.jpg or *.png; text: one sentence per line; characters: files "
       "of text, by default licences that Debian has; arrays: files of NumPy, train-inputs.npy, "
       "train-targets.npy and the same for the test"},
      {"data", kProfile, Form::word({"fashion-mnist", "cifar10", "cifar100", "synthetic"}),
       "synthetic", "data set to compute with"},
      {"data-dir", kRuns | kProfile | kEvaluate, Form::text(), kFashionMnistFolder,
       "folder of the data set"},
      {"samples", kRuns | kEvaluate, Form::integer(0, kMaxCount), 0,
       "Fashion-MNIST, CIFAR, characters: train on the first so many samples; synthetic data: "
       "number of "
       "training samples; 0: all, or 10000 or as many as fit into 512 MiB"},
      {"test-samples", kRuns | kEvaluate, Form::integer(0, kMaxCount), 0,
       "the same for the test; 0: all, or of synthetic data a tenth as many as for training"},
      {"input-size", kRuns | kProfile | kEvaluate, Form::integer(0, 1'000'000), 0,
       "images, text, characters and synthetic data: side of an image, the maximum length of a "
       "sentence with its end mark, or characters per sample; 0: what the model was made for"},
      {"input-shape", kRuns | kProfile | kEvaluate, Form::text(), "",
       "images, text, characters and synthetic data for a model from a file: shape of a sample, "
       "such as 3x32x32, 2xLENGTH for pairs of sentences, or 1xLENGTH for characters"},
      {"input-words", kRuns | kProfile | kEvaluate, Form::integer(0, 1'000'000'000), 0,
       "synthetic data for a model from a file: samples are pairs of sentences with a vocabulary "
       "of this size; 0: samples are real numbers"},
      {"classes", kRuns | kProfile | kEvaluate, Form::integer(1, 1'000'000'000), 10,
       "synthetic data for a model from a file: number of classes, or the vocabulary of the "
       "second sentence"},
      {"augment", kRuns | kEvaluate, Form::on_or_off(), true,
       "images and CIFAR: train on random crops, mirrored at random, for CIFAR after padding by 4 "
       "pixels; characters: on windows from anywhere in the text; false: on the centre, or the "
       "whole, or "
       "windows one after the other"},
      {"source", kRuns | kEvaluate, Form::text(), "en",
       "text: language to translate from, which is the suffix of its files"},
      {"target", kRuns | kEvaluate, Form::text(), "vi",
       "text: language to translate to, which is the suffix of its files"},
      {"vocabulary", kRuns | kEvaluate, Form::integer(1, 10'000'000), 32'000,
       "text: number of words known in each language; the most frequent ones are"},
      {"loaders", kReal | kEvaluate, Form::integer(0, 1024), 4,
       "threads per process that load batches ahead; 0: each worker loads its own"},
      {"batch", kRuns | kProfile | kEvaluate, Form::integer(1, 1'000'000), 32,
       "samples per worker and iteration, or per micro-batch with --accumulate"},
      {"accumulate", kRuns, Form::integer(1, 100'000), 1,
       "micro-batches of --batch samples in an iteration: their gradients are summed and exchanged "
       "once, so a worker's batch is this times --batch"},
      {"batch-shares", kRuns, Form::text(), "equal",
       "how the workers share the samples of an iteration: equal; auto: by their speed, as the "
       "cluster's file has it, or as measured at the start; or a number for each worker, such as "
       "2,2,1"},
  };
}

std::vector<Setting> optimiser_settings() {
  return {
      {"recipe", kRuns, Form::word({"none", "analysis"}), "none",
       "settings of this group and --batch as a paper has them; analysis: 90 epochs of batch 128, "
       "learning rate 0.05 times the workers, 5 epochs of warm-up, a tenth after 30, 60 and 80 "
       "(all in proportion to --epochs)"},
      {"epochs", kRuns, Form::integer(1, 1'000'000), 1, "number of passes over the data"},
      {"evaluate-every", kRuns, Form::integer(0, 1'000'000), 1,
       "evaluate the model each time after this many epochs, and at the end; 0: only at the end. "
       "Where replicas differ, train has all workers meet for it"},
      {"iterations", kTrain, Form::integer(0, kMaxCount), 0,
       "stop after this many iterations; 0: after --epochs"},
      {"iterations", kVirtual, Form::integer(0, 1'000'000), 0,
       "number of iterations; 0: 20, or with --train as many as --epochs have"},
      {"optimizer", kRuns, Form::word(words_of(kOptimizerNames)), "sgd",
       "how gradients become parameters; with another than sgd, --lr and all of its "
       "hyper-parameters have the defaults of torch.optim"},
      {"lr", kRuns, Form::number(0, 1e6), 0.05, "learning rate"},
      {"lr-scale-by-workers", kRuns, Form::on_or_off(), false,
       "multiply the learning rate by the number of workers"},
      {"warmup-epochs", kRuns, Form::number(0, 1e6), 0.0,
       "epochs over which the learning rate rises to its value, from that divided by the number "
       "of workers; pipe-sgd trains synchronously in them"},
      {"lr-decay-epochs", kRuns, Form::text(), "",
       "epochs after which the learning rate falls to a tenth, such as 30,60,80"},
      {"warmup-iterations", kRuns, Form::integer(0, kMaxCount), 0,
       "the same as --warmup-epochs in iterations; both add up"},
      {"warmup-from", kRuns, Form::number(0, 1).or_word({"auto"}), "auto",
       "share of the learning rate with which the warm-up begins; auto: 1 / workers"},
      {"lr-schedule", kRuns, Form::word(words_of(kRateShapeNames)), "step",
       "how the learning rate goes on after the warm-up; step: drops by --lr-decay-epochs or "
       "--lr-decay-iterations, and stays if there are none; cosine, linear: falls to --lr-final"},
      {"lr-decay-iterations", kRuns, Form::text(), "",
       "iterations after which the learning rate falls, such as 3000,6000"},
      {"lr-decay-factor", kRuns, Form::number(0, 1), 0.1,
       "schedule step: factor of each fall of the learning rate"},
      {"lr-final", kRuns, Form::number(0, 1), 0.0,
       "schedules cosine and linear: share of the learning rate at the end of the run"},
      {"lr-by", kRuns, Form::word({"iteration", "epoch"}), "iteration",
       "schedules cosine and linear: how often the learning rate changes"},
      {"momentum", kRuns, Form::number(0, 1), 0.9,
       "momentum of sgd and rmsprop; rmsprop has 0 by default"},
      {"weight-decay", kRuns, Form::number(0, 1), 0.0,
       "weight decay; adamw and lamb take it off the parameters and have 0.01 by default, the "
       "others add it to the gradient"},
      {"clip-value", kRuns, Form::number(0, 1e9), 0.0,
       "limit for each value of the mean gradient; 0: none"},
      {"clip-norm", kRuns, Form::number(0, 1e9), 0.0,
       "limit for the norm of the whole mean gradient, in an all-reduce; the first update waits "
       "for the last sum; 0: none"},
      {"on-nonfinite", kRuns, Form::word({"stop", "warn"}), "stop",
       "what to do when a loss or a gradient is infinite or not a number"},
      {"seed", kRuns | kProfile | kEvaluate, Form::integer(0, INT64_MAX), 1,
       "seed of the initial parameters, of the order of the samples and of all else that is "
       "random"},
  };
}

std::vector<Setting> cluster_settings() {
  return {
      {"transport", kReal, Form::word(words_or("auto", kTransportNames)), "auto",
       "what carries messages between processes: mpi, or tcp, which is connections of their own; "
       "auto: tcp between machines where MPI uses TCP and messages are short"},
      {"transport-threads", kReal, Form::integer(0, 64).or_word({"auto"}), "auto",
       "threads per process that write to and read from the connections of --transport tcp; 0: "
       "the one that runs the protocol does it; auto: by the number of cores"},
      {"cluster", kSimulate, Form::text(), "",
       "TOML file with the hosts and the network, or the name of one that comes with Sluice, such "
       "as clusters/mg-wfbp"},
      {"cluster", kCompare, Form::text(), "",
       "TOML file with the hosts and the network, or the name of one that comes with Sluice; not "
       "with --real"},
      {"cluster", kTrain, Form::text(), "",
       "replays: TOML file, as for simulate, whose speeds and jitter the workers have"},
      {"cluster", kLab, Form::text(), "",
       "TOML file, as for simulate, with the hosts, their bandwidths and latencies, instead of "
       "--hosts and --rate"},
      {"seeds", kCompare, Form::integer(1, 1000), 3,
       "train each combination with so many seeds, from --seed on"},
      {"real", kCompare, Form::on_or_off(), false,
       "train as train does, on threads or under mpirun, instead of in virtual time"},
      {.key = "sweep",
       .commands = kVirtual,
       .form = Form::text(),
       .fallback = "",
       .help = "simulate all combinations: KEY=VALUE,VALUE,... for any key of the settings or of "
               "the cluster's file, such as bandwidth_gbps=1,2,4; may be given several times",
       .repeats = true},
      {"times-at", kSimulate, Form::text(), "",
       "--train --sweep: train once with each combination of the sweep, and tell the times with "
       "these values of the cluster's file too, such as bandwidth_gbps=0.1,1,10"},
      {"workers", kReal, Form::integer(1, 1024), 4, "number of workers"},
      {"workers-per-host", kReal, Form::integer(1, 1024), 1,
       "workers that share a host, with one server, one queue of messages and local aggregation"},
      {"servers", kRuns, Form::integer(0, 1024).or_word({"auto"}), "auto",
       "servers on hosts of their own, under mpirun the last processes; 0: beside the workers of "
       "every host; auto: as the cluster file has them, else as the preset has them"},
      {"servers-per-host", kReal, Form::integer(1, 1024), 1, "servers that share a host"},
      {"net", kDoctor, Form::on_or_off(), false,
       "measure the links between all processes instead; start it with mpirun"},
      {"out", kProbe, Form::text(), nullptr, "TOML file to write, for simulate --cluster"},
      {"allreduce", kProbe, Form::word(words_or("none", kCollectiveNames)), "none",
       "collective whose a + b*M replaces the network in that file"},
  };
}

std::vector<Setting> launch_settings() {
  return {
      {"np", kLaunch, Form::integer(1, 100'000), nullptr, "number of processes; -n is the same"},
      {"hostfile", kLaunch, Form::text(), "",
       "file of mpirun with the hosts to start on, by ssh; by default all processes run here, or, "
       "with "
       "--transport tcp in an allocation of Slurm, on its nodes, by srun"},
      {"transport", kLaunch, Form::word({"mpi", "tcp"}), "mpi",
       "mpi: mpirun starts the processes; tcp: launch does it itself, without MPI, and workers "
       "go on when another one is lost, if their algorithm allows it"},
      {"max-restarts", kLaunch, Form::integer(0, 1'000'000), 0,
       "after a failure the program is started again, so often without a new checkpoint in "
       "between; train with --checkpoint goes on from its newest one; with --transport tcp a "
       "process that the others go on without is started again so often, and joins them"},
      {"hosts", kLab, Form::integer(1, lab::kMaxHosts), 4, "number of emulated hosts"},
      {"workers-per-host", kLab, Form::integer(1, 64), 1,
       "processes on each host; with --cluster, by default as many as the file has workers there"},
      {"on", kLab, Form::word({"hosts", "head"}), "hosts",
       "hosts: start the command as a process on each host; head: run it once, beside the hosts, "
       "where launch and mpirun start processes on them"},
      {"user", kLab, Form::text(), "",
       "user of this machine as whom the command runs, such as nobody; by default root"},
      {"rate", kLab, Form::text(), "1gbit",
       "bandwidth of each host's link in each direction, such as 500mbit or 2.5gbit; none: no "
       "limit"},
      {"rate-of", kLab, Form::text(), "",
       "hosts with another rate, counted from 0, such as 2=500mbit,3=none"},
  };
}

std::vector<Setting> fault_settings() {
  return {
      {"faults", kSimulate, Form::text(), "",
       "TOML file with what goes wrong in the simulation: hosts that are killed, stop or are slow, "
       "links that are slow or cut; the time and the work that this costs are reported"},
      {"fault-seed", kSimulate, Form::integer(0, kMaxCount), 0,
       "draws what --faults leaves to chance; without --faults, one fault; 0: 1, or no fault"},
      {"checkpoint-every", kSimulate, Form::text(), "500it",
       "--faults: so many iterations lie between the checkpoints from which a job that has lost a "
       "host is started again"},
  };
}

std::vector<Setting> estimate_settings() {
  return {
      {"device-flops", kProfile, Form::number(0, 1e21), 0.0,
       "do not measure; estimate the times of a device with this many FLOP/s"},
      {"device-bandwidth", kProfile, Form::number(0, 1e21), 0.0,
       "estimate: memory bandwidth of that device in bytes/s; 0: one byte per 20 FLOP, as GPUs "
       "have it"},
      {"samples-per-s", kProfile, Form::number(0, 1e12), 0.0,
       "estimate: scale all times to this throughput; 0: do not scale"},
      {"device-name", kProfile, Form::text(), "", "name of the device, for the file"},
      {"source", kProfile, Form::text(), "", "source of the figures, for the file"},
  };
}

std::vector<Setting> output_settings() {
  return {
      {"out", kProfile, Form::text(), nullptr, "JSON file to write, for simulate --profile"},
      {"save", kRuns, Form::text(), "",
       "folder for the trained model: model.safetensors, model.json (normalisation, names of the "
       "classes, vocabularies), and model.pt if it came as TorchScript"},
      {"checkpoint", kTrain, Form::text(), "",
       "folder for checkpoints, which all hosts share: written while training goes on, at the end, "
       "and when SIGINT or SIGTERM stops the run"},
      {"checkpoint", kLaunch, Form::text(), "",
       "--max-restarts: folder of the program's checkpoints, if its command does not have "
       "--checkpoint FOLDER itself"},
      {"checkpoint-every", kTrain, Form::text(), "10min",
       "how often: after so many iterations, such as 500it, or so much time, such as 90s, 10min or "
       "2h"},
      {"keep", kTrain, Form::integer(1, 1'000'000), 3, "so many of the last checkpoints stay"},
      {"resume", kTrain, Form::text(), "",
       "go on from a checkpoint: a folder of them, of which the newest sound one is taken, or one "
       "of them; auto: the folder of --checkpoint, or from the beginning if it has none; runs in "
       "lock step also with other workers, servers or hosts"},
      {"run", kRuns | kLab | kStudy, Form::text(), "",
       "folder for the record of the run; must be new or empty"},
      {"trace", kRuns, Form::text(), "",
       "write a Chrome trace to this file; without a name: to trace.json in the run's folder",
       "auto"},
      {"out", kReport, Form::text(), "",
       "HTML file to write; by default report.html in the run's folder, or with several runs "
       "comparison.html in the first one's"},
      {"json", kRuns | kEvaluate | kShow | kDoctor | kProbe | kProfile | kStudy | kReport,
       Form::on_or_off(), false, "print the result as JSON"},
      {"log-level",
       kRuns | kEvaluate | kShow | kLab | kDoctor | kProbe | kProfile | kStudy | kReport | kLaunch,
       Form::word({"trace", "debug", "info", "warn", "error", "off"}), "info",
       "how much to log to standard error"},
  };
}

}  // namespace sluice::cli
