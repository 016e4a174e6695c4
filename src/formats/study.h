#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/document.h"

namespace sluice {

// A figure of a paper, and how to find the same in the data of a study.
struct StudyFigure {
  std::string what;
  std::string paper;  // as the paper has it
  std::string of;     // a column of the data
  std::string at;     // cells as a sweep names them; of several cells the largest figure counts
  std::string per;    // divided by this column; empty: not divided
  // Divided by the same cell with these values instead, "-": without that axis; empty: not divided.
  std::string over;
  // Where evaluations are rows: the first one with this accuracy counts, not the last.
  std::optional<double> reaches;
  double times = 1;  // factor, for another unit
  int decimals = 2;
  std::string unit;  // behind the number
  std::string why;   // the figures differ; empty: they do not
};

// Lines over a column of the data, one for each cell.
struct StudyPicture {
  std::string name;  // of its file
  std::string at;    // cells as a sweep names them
  std::string x;     // a column: an axis of the study, or one of evaluations
  std::string y;
  double times = 1;  // factor on y
  std::string x_title;
  std::string y_title;
  double y_from = 0;    // where a linear y axis begins
  bool linear = false;  // both axes
};

// Which of several settings has the smallest figure, by rows and columns; all of them as a sweep
// names cells. It is looked at twice: where all have seen all samples, in the first column, and
// after equal seconds, when the first of them has.
struct StudyContest {
  std::string name;     // of its picture
  std::string among;    // the competitors
  std::string rows;     // cells
  std::string columns;  // cells; they change the times only
  std::string of;       // a column of the data
  std::string title;
};

// The table [study] in the configuration file of a study.
struct Study {
  std::string title;
  std::string paper;                         // what of which paper
  std::map<std::string, std::string> quick;  // settings of the short form, by key
  std::vector<StudyFigure> figures;
  std::vector<StudyPicture> pictures;
  std::vector<StudyContest> contests;
};

// Errors name the file and the key.
Result<Study> read_study(const std::string& path);

}  // namespace sluice
