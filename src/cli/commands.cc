#include "cli/commands.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "cli/console.h"

namespace sluice::cli {
namespace {

template <int (*Run)(const Settings&)>
int alone(const Settings& settings, const Words& command) {
  return command.empty()
             ? Run(settings)
             : bad_input(Error("-- " + command.front() + ": only launch and lab take a command"));
}

constexpr std::array kCommands{
    CommandEntry{"train", "Train a model with several workers, on this machine or under mpirun",
                 Command::kTrain, alone<train>},
    CommandEntry{"evaluate", "Tell the loss and the accuracy of a saved model on held-out data",
                 Command::kEvaluate, alone<evaluate>},
    CommandEntry{"simulate", "Run the same algorithms in virtual time", Command::kSimulate,
                 alone<simulate>},
    CommandEntry{"compare",
                 "Train with several presets and seeds, at equal samples and at equal seconds",
                 Command::kCompare, alone<compare>},
    CommandEntry{"study", "Redo a study of a paper, and show its figures beside ours: study NAME",
                 Command::kStudy, study, "NAME", "a study; --list shows them"},
    CommandEntry{"presets", "List the presets: named ways to synchronise", Command::kShow,
                 alone<presets>},
    CommandEntry{"models", "List the models that can be trained", Command::kShow, alone<models>},
    CommandEntry{"doctor",
                 "Show what was built in, what is missing and how to get it; check the network",
                 Command::kDoctor, alone<doctor>},
    CommandEntry{"probe", "Measure the machines and their network under mpirun, for simulate",
                 Command::kProbe, alone<probe>},
    CommandEntry{"profile", "Time the layers of a model, or estimate their times, for simulate",
                 Command::kProfile, alone<profile>},
    CommandEntry{"report", "Write a page with figures and pictures of runs: report RUN ...",
                 Command::kReport, report, "RUN",
                 "folder of a run; with several, the page compares them"},
    CommandEntry{"launch",
                 "Start a program as several processes, here or on the hosts of a file: launch "
                 "--np N -- COMMAND ...",
                 Command::kLaunch, launch},
    CommandEntry{"lab", "Run a command on an emulated cluster: lab [SETTINGS] -- COMMAND ...",
                 Command::kLab, lab},
};

}  // namespace

std::span<const CommandEntry> command_table() { return kCommands; }

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  std::ranges::transform(kCommands, std::back_inserter(names), &CommandEntry::name);
  return names;
}

}  // namespace sluice::cli
