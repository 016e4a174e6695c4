// Help, completions and manual page, all generated from the tables of commands and settings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/setting.h"
#include "support/command.h"

namespace sluice::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Outcome ask(const std::string& arguments) {
  return run_command("'" SLUICE_BINARY "' " + arguments, TemporaryFolder());
}

TEST(CliHelpTest, ShowsTheSettingsInGroups) {
  const std::string help = ask("train --help").out;
  std::size_t at = 0;
  for (const char* part : {"General:", "--config", "Synchronisation:", "--preset",
                           "Model:", "--device", "Cluster:", "--workers ", "Data:", "--batch",
                           "Optimiser:", "--momentum", "Output:", "--save"}) {
    const std::size_t found = help.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " is not in its place in\n" << help;
    at = found;
  }
  EXPECT_THAT(help, Not(HasSubstr("Estimate:"))) << "has no setting of this command";
}

TEST(CliHelpTest, IsACommandToo) {
  EXPECT_EQ(ask("help train").out, ask("train --help").out);
  EXPECT_EQ(ask("help").out, ask("").out);
  const Outcome unknown = ask("help trian");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "sluice: trian: is not a command of sluice; did you mean train?\n");
}

TEST(CliHelpTest, EverySettingHasAGroup) {
  for (const Setting& setting : all_settings()) {
    EXPECT_NE(setting.group, "") << setting.key;
  }
}

TEST(CliCommandLineTest, SwitchesTakeAValue) {
  for (const char* off : {"--json false", "--json=false", "--json true --json false"}) {
    EXPECT_THAT(ask(std::string("presets ") + off).out, StartsWith("preset ")) << off;
  }
  for (const char* on : {"--json", "--json true", "--json=true"}) {
    EXPECT_THAT(ask(std::string("presets ") + on).out, StartsWith("[")) << on;
  }
  const Outcome surplus = ask("presets --json maybe");
  EXPECT_EQ(surplus.code, 2);
  EXPECT_THAT(surplus.err, HasSubstr("maybe: is not known to presets"));
}

TEST(CliCommandLineTest, KeysMayHaveUnderscores) {
  const Outcome bad_level = ask("presets --log_level=a_b");
  EXPECT_THAT(bad_level.err, StartsWith("sluice: --log-level: is \"a_b\"")) << "values stay";
  EXPECT_EQ(ask("presets --log_level off").code, 0);
}

TEST(CliCommandLineTest, SuggestsWhatIsNearOrKnownUnderAnotherName) {
  const auto complaint = [](const std::string& flag) { return ask("train " + flag).err; };
  EXPECT_THAT(complaint("--learning_rate 1"), HasSubstr("; did you mean --lr?"));
  EXPECT_THAT(complaint("--batch-size=3"), HasSubstr("; did you mean --batch?"));
  EXPECT_THAT(complaint("--weigth-decya 1"), HasSubstr("; did you mean --weight-decay?"));
  EXPECT_THAT(complaint("--wieght-dceya 1"), Not(HasSubstr("did you mean"))) << "three slips";
}

TEST(CliCompletionTest, BashOffersWhatFits) {
  const auto offered = [](const std::string& words, const std::string& last) {
    const TemporaryFolder folder;
    folder.write("complete", "eval \"$('" SLUICE_BINARY
                             "' completion bash)\"\nCOMP_WORDS=(sluice " +
                                 words + " '" + last +
                                 "')\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_sluice\n"
                                 "echo \"${COMPREPLY[*]}\"\n");
    return run_command("bash complete", folder).out;
  };
  EXPECT_EQ(offered("", "si"), "simulate\n");
  EXPECT_EQ(offered("help", "la"), "launch lab\n");
  EXPECT_EQ(offered("train", "--warmup-e"), "--warmup-epochs\n");
  EXPECT_EQ(offered("simulate", "--conf"), "--config\n");
  EXPECT_EQ(offered("train --slice 3 --order", "p"), "priority\n");
  EXPECT_EQ(offered("train --augment", ""), "true false\n");
  EXPECT_EQ(offered("train --run", "x"), "\n") << "left to the names of files";
}

TEST(CliCompletionTest, EveryShellKnowsEverySetting) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome script = ask(std::string("completion ") + shell);
    ASSERT_EQ(script.code, 0) << script.err;
    const std::string dashes = shell == std::string("fish") ? "-l " : "--";
    for (const Setting& setting : all_settings()) {
      EXPECT_THAT(script.out, HasSubstr(dashes + setting.key)) << shell;
    }
  }
  const Outcome unknown = ask("completion csh");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("expected bash, zsh or fish"));
}

TEST(CliCompletionTest, TheShellsThatAreHereCanReadTheirScript) {
  const TemporaryFolder folder;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = std::string("sluice.") + shell;
    folder.write(script, ask(std::string("completion ") + shell).out);
    const Outcome read = run_command(
        "command -v " + std::string(shell) + " || exit 0; " + shell + " -n " + script, folder);
    EXPECT_EQ(read.code, 0) << shell << ": " << read.err;
  }
}

TEST(CliManualTest, HasEveryCommandAndSetting) {
  const std::string page = ask("manual").out;
  EXPECT_THAT(page, StartsWith(".TH SLUICE 1"));
  for (const char* command : {"train", "simulate", "presets", "models", "doctor", "lab", "help"}) {
    EXPECT_THAT(page, HasSubstr(std::string(".SS sluice ") + command));
  }
  for (const Setting& setting : all_settings()) {
    std::string key = setting.key;
    for (std::size_t at = 0; (at = key.find('-', at)) != std::string::npos; at += 2) {
      key.insert(at, "\\");
    }
    EXPECT_THAT(page, HasSubstr("\n\\fB\\-\\-" + key + "\\fR"));
  }
}

}  // namespace
}  // namespace sluice::cli
