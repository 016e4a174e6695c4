#include "report/markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/text.h"

namespace sluice {
namespace {

TEST(Markup, EscapesWhatHasAMeaningInHtml) {
  EXPECT_EQ(escaped("<a href=\"x\" id='y'>&amp;"),
            "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(escaped("naïve · 5 µs"), "naïve · 5 µs");
  EXPECT_EQ(escaped("two\nlines\x01"), "two lines ");
  EXPECT_EQ(escaped("a\xff\xc3"), "a??");
}

// Undoes what escaped() does.
std::string plain(std::string text) {
  for (const auto& [written, meant] :
       {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}}) {
    for (std::size_t at = text.find(written); at != std::string::npos;
         at = text.find(written, at + 1)) {
      text.replace(at, std::string(written).size(), meant);
    }
  }
  return text;
}

RC_GTEST_PROP(Markup, NeverLeavesAnElementOrAnAttribute, (const std::string& text)) {
  const std::string safe = escaped(text);
  RC_ASSERT(safe.find_first_of("<>\"'") == std::string::npos);
  RC_ASSERT(utf8_length(safe) == safe.size());
  RC_ASSERT(plain(safe).size() == text.size());
  if (utf8_length(text) == text.size()) {
    RC_ASSERT(plain(safe) == one_line(text));
  }
}

}  // namespace
}  // namespace sluice
