#include "formats/study.h"

#include <fmt/format.h>

#include <utility>

#include "base/file.h"

namespace sluice {
namespace {

constexpr double kHuge = 1e12;

StudyFigure figure_of(Fields& fields) {
  StudyFigure figure;
  figure.what = fields.get<std::string>("what", Form::text());
  figure.paper = fields.get<std::string>("paper", Form::text());
  figure.of = fields.get<std::string>("of", Form::text());
  figure.at = fields.get<std::string>("at", Form::text());
  figure.per = fields.get<std::string>("per", Form::text(), "");
  figure.over = fields.get<std::string>("over", Form::text(), "");
  if (const Json* reaches = fields.optional("reaches", Form::number(0, 1))) {
    figure.reaches = reaches->get<double>();
  }
  figure.times = fields.get<double>("times", Form::number(-kHuge, kHuge), 1);
  figure.decimals = fields.get<int>("decimals", Form::integer(0, 9), 2);
  figure.unit = fields.get<std::string>("unit", Form::text(), "");
  figure.why = fields.get<std::string>("why", Form::text(), "");
  return figure;
}

StudyPicture picture_of(Fields& fields) {
  StudyPicture picture;
  picture.name = fields.get<std::string>("name", Form::text());
  picture.at = fields.get<std::string>("at", Form::text());
  picture.x = fields.get<std::string>("x", Form::text());
  picture.y = fields.get<std::string>("y", Form::text());
  picture.times = fields.get<double>("times", Form::number(0, kHuge), 1);
  picture.x_title = fields.get<std::string>("x_title", Form::text(), picture.x);
  picture.y_title = fields.get<std::string>("y_title", Form::text(), picture.y);
  picture.y_from = fields.get<double>("y_from", Form::number(0, kHuge), 0);
  picture.linear = fields.get<bool>("linear", Form::on_or_off(), false);
  return picture;
}

StudyContest contest_of(Fields& fields) {
  StudyContest contest;
  contest.name = fields.get<std::string>("name", Form::text());
  contest.among = fields.get<std::string>("among", Form::text());
  contest.rows = fields.get<std::string>("rows", Form::text());
  contest.columns = fields.get<std::string>("columns", Form::text());
  contest.of = fields.get<std::string>("of", Form::text());
  contest.title = fields.get<std::string>("title", Form::text());
  return contest;
}

// The tables [[study.KEY]].
template <class Part>
std::vector<Part> parts_of(Fields& study, const std::string& key, Part (*part_of)(Fields&)) {
  std::vector<Part> parts;
  if (const Json* list = study.optional(key, Form::list())) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string where = fmt::format("{}.{} {}", study.where(), key, i + 1);
      if (!(*list)[i].is_object()) {
        study.merge(Error(where + ": expected a table"));
        break;
      }
      Fields fields((*list)[i], where);
      parts.push_back(part_of(fields));
      study.merge(fields.done());
    }
  }
  return parts;
}

// As a flag would have it.
std::string flag_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

Result<Study> read_study(const std::string& path) {
  const auto text = read_file(path);
  if (!text) {
    return text.error();
  }
  const auto file = parse_toml(*text, path);
  if (!file) {
    return file.error();
  }
  if (!file->contains("study") || !file->at("study").is_object()) {
    return Error(path + ": study: is missing; the table [study] makes a configuration a study");
  }
  Fields fields(file->at("study"), path + ": study");
  Study study;
  study.title = fields.get<std::string>("title", Form::text());
  study.paper = fields.get<std::string>("paper", Form::text());
  if (const Json* quick = fields.optional("quick", Form::table())) {
    for (const auto& [key, value] : quick->items()) {
      study.quick[key] = flag_text(value);
    }
  }
  study.figures = parts_of(fields, "figure", figure_of);
  study.pictures = parts_of(fields, "picture", picture_of);
  study.contests = parts_of(fields, "contest", contest_of);
  if (const auto done = fields.done(); !done) {
    return done.error();
  }
  return study;
}

}  // namespace sluice
