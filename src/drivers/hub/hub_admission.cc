#include "drivers/hub/hub_admission.h"

#include <fmt/format.h>

#include <istream>
#include <sstream>

namespace sluice {
namespace {

std::string text_of(const Lives& lives) {
  std::string text = fmt::format("{} ", lives.size());
  for (const auto& [rank, life] : lives) {
    text += fmt::format("{} {} ", rank, life);
  }
  return text;
}

Lives lives_from(std::istream& in) {
  Lives lives;
  std::size_t count = 0;
  std::size_t rank = 0;
  std::uint32_t life = 0;
  for (in >> count; count > 0 && in >> rank >> life; --count) {
    lives[rank] = life;
  }
  return lives;
}

}  // namespace

std::string encode(const HubAdmission& admission) {
  return text_of(admission.joining) + text_of(admission.all) +
         fmt::format("{}", admission.channels);
}

HubAdmission decode_admission(const std::string& text) {
  std::istringstream in(text);
  HubAdmission admission;
  admission.joining = lives_from(in);
  admission.all = lives_from(in);
  in >> admission.channels;
  return admission;
}

Lives joining_in(const std::string& text) {
  std::istringstream in(text);
  return lives_from(in);
}

}  // namespace sluice
