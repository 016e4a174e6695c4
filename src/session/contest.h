#pragma once

#include "base/result.h"
#include "formats/study.h"
#include "report/board.h"
#include "session/study_data.h"

namespace sluice {

// Who has the smallest figure in each row and column of a contest. A training that diverged with
// some seed, or has no evaluation yet by then, is out of it; between two evaluations a straight
// line counts. Errors say what is not in the data.
Result<Board> decide(const StudyContest& contest, const StudyData& data);

}  // namespace sluice
