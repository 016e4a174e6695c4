#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// A command in a console block of a Markdown file, and the output the block shows for it.
struct ShownCommand {
  std::string command;
  std::vector<std::string> shown;
  std::size_t first_shown;  // line number, from 0, where the output begins
};

// The text between ```console and ```. A comment in the line before may say why it is not run, or
// what it needs to run: <!-- not run: REASON --> or <!-- needs: models -->.
struct ConsoleBlock {
  std::size_t line;     // number of its first fence line, from 1
  std::string not_run;  // the reason; empty if the block is run
  bool needs_models = false;
  std::vector<ShownCommand> commands;
};

// The text after this word in a comment; empty if the comment has another word.
inline std::string said_in_comment(std::string_view line, std::string_view word) {
  const std::string begin = "<!-- " + std::string(word) + ": ";
  constexpr std::string_view kEnd = " -->";
  if (!line.starts_with(begin) || !line.ends_with(kEnd)) {
    return "";
  }
  return std::string(line.substr(begin.size(), line.size() - begin.size() - kEnd.size()));
}

// A command that ends with a backslash continues in the next line.
inline std::vector<ConsoleBlock> console_blocks(const std::vector<std::string>& lines) {
  std::vector<ConsoleBlock> blocks;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != "```console") {
      continue;
    }
    ConsoleBlock block{i + 1, "", false, {}};
    if (i > 0) {
      block.not_run = said_in_comment(lines[i - 1], "not run");
      block.needs_models = said_in_comment(lines[i - 1], "needs") == "models";
    }
    for (++i; i < lines.size() && lines[i] != "```"; ++i) {
      if (lines[i].starts_with("$ ")) {
        std::string command = lines[i].substr(2);
        while (command.ends_with("\\") && i + 1 < lines.size()) {
          command += "\n" + lines[++i];
        }
        block.commands.push_back({command, {}, i + 1});
      } else if (!block.commands.empty()) {
        block.commands.back().shown.push_back(lines[i]);
      }
    }
    blocks.push_back(block);
  }
  return blocks;
}

// Whether the lines match; a line "..." stands for any number of lines.
inline bool is_as_shown(const std::vector<std::string>& shown,
                        const std::vector<std::string>& lines, std::size_t s = 0,
                        std::size_t l = 0) {
  if (s == shown.size()) {
    return l == lines.size();
  }
  if (shown[s] == "...") {
    return is_as_shown(shown, lines, s + 1, l) ||
           (l < lines.size() && is_as_shown(shown, lines, s, l + 1));
  }
  return l < lines.size() && shown[s] == lines[l] && is_as_shown(shown, lines, s + 1, l + 1);
}

}  // namespace sluice
