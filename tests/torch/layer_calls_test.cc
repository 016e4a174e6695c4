#include "torch/layer_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "torch/recorded_hooks.h"

namespace sluice {
namespace {

using Calls = std::vector<std::string>;

// Layers 0 (parameters 0 and 1), 1 (parameter 2) and 2 (parameter 3).
Layout three_layers() {
  return make_layout({{"a.weight", 1}, {"a.bias", 1}, {"b.weight", 1}, {"c.weight", 1}}, {});
}

TEST(LayerCallsTest, PassesEveryLayerOnOnce) {
  const Layout layout = three_layers();
  RecordedHooks hooks;
  LayerCalls calls(layout, hooks);
  for (const std::size_t parameter : {0U, 1U, 2U, 0U, 3U, 2U}) {
    calls.before_read(parameter);
  }
  calls.forward_done();
  EXPECT_EQ(hooks.calls, (Calls{"read 0", "read 1", "read 2", "forward done"}));
  hooks.calls.clear();
  for (const std::size_t parameter : {3U, 1U, 2U, 0U}) {
    calls.gradient_final(parameter);
  }
  calls.backward_done();
  EXPECT_EQ(hooks.calls, (Calls{"ready 2", "ready 1", "ready 0"}));
}

TEST(LayerCallsTest, SweepsWhatThePassDidNotUse) {
  const Layout layout = three_layers();
  RecordedHooks hooks;
  LayerCalls calls(layout, hooks);
  calls.before_read(2);
  calls.forward_done();
  EXPECT_EQ(hooks.calls, (Calls{"read 1", "read 0", "read 2", "forward done"}));
  hooks.calls.clear();
  calls.gradient_final(2);
  calls.gradient_final(1);
  calls.backward_done();
  EXPECT_EQ(hooks.calls, (Calls{"ready 1", "ready 2", "ready 0"}));
}

TEST(LayerCallsTest, RefusesASecondFinalGradient) {
  const Layout layout = three_layers();
  RecordedHooks hooks;
  LayerCalls calls(layout, hooks);
  calls.gradient_final(3);
  EXPECT_THROW(calls.gradient_final(3), InvariantError);
}

}  // namespace
}  // namespace sluice
