#include "state/workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codecs/sparse.h"
#include "codecs/values.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;

Payload floats(std::vector<float> values) { return Payload::owning(std::move(values)); }

// A sparse vector with the values of `chunk` at these positions.
Payload sparse(std::vector<float> chunk, const std::vector<std::uint32_t>& positions) {
  return Payload::owning(encode_sparse(chunk, positions));
}

std::vector<std::pair<std::uint32_t, float>> entries_of(const Payload& payload,
                                                        std::int64_t length) {
  const auto view = SparseView::parse(payload.bytes(), length);
  EXPECT_TRUE(view);
  std::vector<std::pair<std::uint32_t, float>> entries;
  for (std::size_t e = 0; view && e < view->entries(); ++e) {
    entries.emplace_back(view->position(e), view->value(e));
  }
  return entries;
}

// Six parameters and two slots of gradients. Work is on the second to the fourth parameter.
struct OneNode {
  explicit OneNode(Codec codec = Codec::kNone, float momentum = 0, float decay = 0) {
    Strategy strategy;
    strategy.codec = codec;
    strategy.dgc.momentum_correction = false;
    strategy.dgc.clipping = false;
    strategy.dgc.sparsity = 0;
    workspace.emplace(
        parameters, std::vector<std::span<float>>{gradients[0], gradients[1]},
        UpdateRule{.rate = {.base = 0.5F}, .momentum = momentum, .weight_decay = decay}, strategy,
        Topology(2, 1, 0));
  }

  static Work work(WorkKind kind, std::vector<Payload> sources) {
    Work work;
    work.kind = kind;
    work.range = {1, 4};
    work.iteration = 1;
    work.sources = std::move(sources);
    return work;
  }

  std::vector<float> parameters{1, 2, 3, 4, 5, 6};
  std::vector<std::vector<float>> gradients{{10, 20, 30, 40, 50, 60}, {1, 1, 1, 1, 1, 1}};
  std::optional<Workspace> workspace;
};

TEST(Workspace, UpdatesWithTheMeanOfTheContributors) {
  OneNode node;
  Work work = OneNode::work(WorkKind::kUpdate, {floats({1, 2, 3}), floats({3, 2, 5})});
  work.contributors = 4;
  work.workers = 4;
  EXPECT_FALSE(node.workspace->execute(work).has_data());
  EXPECT_THAT(node.parameters, ElementsAre(1, 2 - 0.5F, 3 - 0.5F, 4 - 1, 5, 6));
}

TEST(Workspace, KeepsAVelocityForEveryParameter) {
  OneNode node(Codec::kNone, 0.5F, 0.25F);
  const Work work = OneNode::work(WorkKind::kUpdate, {floats({4, 0, 0})});
  node.workspace->execute(work);
  // v = 4 + 0.25 * 2 = 4.5; w = 2 - 0.5 * 4.5
  EXPECT_EQ(node.parameters[1], -0.25F);
  node.workspace->execute(work);
  // v = 0.5 * 4.5 + 4 - 0.25 * 0.25
  EXPECT_EQ(node.parameters[1], -0.25F - 0.5F * (2.25F + 4 - 0.0625F));
  EXPECT_EQ(node.parameters[0], 1);
}

TEST(Workspace, AddsToTheSlotOfTheWork) {
  OneNode node;
  Work work = OneNode::work(WorkKind::kReduce, {floats({1, 2, 3})});
  work.slot = 1;
  node.workspace->execute(work);
  EXPECT_THAT(node.gradients[0], ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_THAT(node.gradients[1], ElementsAre(1, 2, 3, 4, 1, 1));
}

// 1e8 + 1 is 1e8 in a float, so the order shows.
TEST(Workspace, AddsInTheOrderOfTheSourcesWithTheGradientsInTheirPlace) {
  const Payload big = floats({1e8F, 1e8F, 1e8F});
  const Payload minus = floats({-1e8F, -1e8F, -1e8F});
  OneNode node;
  Work work = OneNode::work(WorkKind::kReduce, {big, minus, floats({1, 2, 3})});
  work.slot = 1;
  work.before = 2;
  node.workspace->execute(work);
  EXPECT_THAT(node.gradients[1], ElementsAre(1, 2, 3, 4, 1, 1));
  work.before = 1;
  node.workspace->execute(work);
  EXPECT_THAT(node.gradients[1], ElementsAre(1, 1, 2, 3, 1, 1));
  work.before = 4;
  EXPECT_THROW(node.workspace->execute(work), InvariantError);
}

// As a server does that begins its sum before the last gradient is there.
TEST(Workspace, ASumInPartsHasTheBitsOfOneInOneGo) {
  const std::vector<Payload> all{floats({1e8F, 1, 3}), floats({1, 1e8F, 5}), floats({-1e8F, 1, 7}),
                                 floats({0.3F, -1e8F, 11})};
  OneNode whole;
  Work update = OneNode::work(WorkKind::kUpdate, all);
  update.contributors = update.workers = 4;
  whole.workspace->execute(update);
  OneNode parts;
  Work sum = OneNode::work(WorkKind::kReduce, {all[0], all[1]});
  sum.fresh = true;
  parts.workspace->execute(sum);
  EXPECT_THAT(parts.gradients[0], ElementsAre(10, 1e8F, 1e8F, 8, 50, 60));
  sum.fresh = false;
  sum.sources = {all[2]};
  parts.workspace->execute(sum);
  update.begun = true;
  update.sources = {all[3]};
  parts.workspace->execute(update);
  EXPECT_EQ(parts.parameters, whole.parameters);
  sum.fresh = true;
  sum.sources = {};
  EXPECT_THROW(parts.workspace->execute(sum), InvariantError);
}

TEST(Workspace, ASumOfPackedGradientsInPartsHasTheBitsOfOneInOneGo) {
  OneNode whole(Codec::kTruncate16);
  const Payload packed = whole.workspace->execute(OneNode::work(WorkKind::kEncode, {}));
  Work update = OneNode::work(WorkKind::kUpdate, {packed, packed, packed});
  update.coded = true;
  update.contributors = update.workers = 3;
  whole.workspace->execute(update);
  OneNode parts(Codec::kTruncate16);
  Work sum = OneNode::work(WorkKind::kReduce, {packed, packed});
  sum.coded = true;
  sum.fresh = true;
  parts.workspace->execute(sum);
  EXPECT_THAT(parts.gradients[0], ElementsAre(10, 40, 60, 80, 50, 60));
  update.begun = true;
  update.sources = {packed};
  parts.workspace->execute(update);
  EXPECT_EQ(parts.parameters, whole.parameters);
}

TEST(Workspace, AddsManyValuesBlockByBlock) {
  constexpr std::size_t kMany = 2500;
  std::vector<float> parameters(kMany);
  std::vector<float> gradients(kMany, 1);
  std::vector<float> source(kMany);
  std::iota(source.begin(), source.end(), 0.0F);
  Workspace workspace(parameters, {gradients}, {}, Strategy(), Topology());
  Work work;
  work.kind = WorkKind::kReduce;
  work.range = {0, kMany};
  work.before = 1;
  work.sources = {Payload::owning(source), Payload::owning(source)};
  workspace.execute(work);
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(gradients[i], 1 + 2 * static_cast<float>(i));
  }
}

TEST(Workspace, BlendsByBothFactors) {
  OneNode node;
  Work work = OneNode::work(WorkKind::kBlend, {floats({10, 20, 30})});
  work.keep = 0.5F;
  work.add = 0.25F;
  node.workspace->execute(work);
  EXPECT_THAT(node.parameters, ElementsAre(1, 3.5F, 6.5F, 9.5F, 5, 6));
}

TEST(Workspace, PullsBothEndsOfTheSpring) {
  OneNode node;
  Work work = OneNode::work(WorkKind::kElastic, {floats({6, 3, 0})});
  work.pull = 0.25F;
  const Payload output = node.workspace->execute(work);
  EXPECT_THAT(node.parameters, ElementsAre(1, 3, 3, 3, 5, 6));
  EXPECT_THAT(output.values(), ElementsAre(5, 3, 1));
}

TEST(Workspace, ASwapIsAMeanAndLeavesTheParametersAlone) {
  OneNode node;
  const Payload mean = node.workspace->execute(
      OneNode::work(WorkKind::kSwap, {floats({6, 3, 0}), floats({2, 3, 4})}));
  EXPECT_THAT(mean.values(), ElementsAre(4, 3, 2));
  EXPECT_THAT(node.parameters, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Workspace, MovesByWhatASwapHasChanged) {
  OneNode node;
  node.workspace->execute(
      OneNode::work(WorkKind::kSwapped, {floats({4, 3, 2}), floats({6, 3, 0})}));
  EXPECT_THAT(node.parameters, ElementsAre(1, 0, 3, 6, 5, 6));
}

TEST(Workspace, PacksAndUnpacksTheRangeOfTheSlot) {
  OneNode node(Codec::kTruncate16);
  Work encode = OneNode::work(WorkKind::kEncode, {});
  const Payload packed = node.workspace->execute(encode);
  EXPECT_EQ(packed.size(), 3 * 2);
  Work decode = OneNode::work(WorkKind::kDecode, {packed});
  decode.coded = true;
  decode.slot = 1;
  node.workspace->execute(decode);
  EXPECT_THAT(node.gradients[1], ElementsAre(1, 20, 30, 40, 1, 1));
  Work add = OneNode::work(WorkKind::kReduce, {packed});
  add.coded = true;
  add.slot = 1;
  node.workspace->execute(add);
  EXPECT_THAT(node.gradients[1], ElementsAre(1, 40, 60, 80, 1, 1));
  Work update = OneNode::work(WorkKind::kUpdate, {packed, packed});
  update.coded = true;
  update.contributors = 2;
  update.workers = 2;
  node.workspace->execute(update);
  EXPECT_THAT(node.parameters, ElementsAre(1, 2 - 10, 3 - 15, 4 - 20, 5, 6));
}

TEST(Workspace, MergesSparseVectors) {
  OneNode node(Codec::kDgc);
  Work work = OneNode::work(WorkKind::kMerge, {sparse({1, 2, 3}, {0, 2}), sparse({5, 6, 7}, {2})});
  work.coded = true;
  const Payload sum = node.workspace->execute(work);
  EXPECT_THAT(entries_of(sum, 3), ElementsAre(std::pair(0U, 1.0F), std::pair(2U, 10.0F)));
}

TEST(Workspace, ASparseUpdateTouchesItsEntriesAndPutsOutThePatch) {
  OneNode node(Codec::kDgc);
  Work work = OneNode::work(WorkKind::kUpdate, {sparse({4, 0, 8}, {0, 2})});
  work.coded = true;
  work.contributors = 2;
  work.workers = 2;
  const Payload patch = node.workspace->execute(work);
  EXPECT_THAT(node.parameters, ElementsAre(1, 2 - 1, 3, 4 - 2, 5, 6));
  EXPECT_THAT(entries_of(patch, 3), ElementsAre(std::pair(0U, 1.0F), std::pair(2U, 2.0F)));
  OneNode other(Codec::kDgc);
  Work apply = OneNode::work(WorkKind::kPatch, {patch});
  apply.coded = true;
  other.workspace->execute(apply);
  EXPECT_EQ(other.parameters, node.parameters);
}

TEST(Workspace, TellsEachReaderWhatItHasMissed) {
  OneNode node(Codec::kDgc);
  const auto update = [&](std::uint32_t position) {
    Work work = OneNode::work(WorkKind::kUpdate, {sparse({2, 2, 2}, {position})});
    work.coded = true;
    node.workspace->execute(work);
  };
  const auto news = [&](std::size_t reader) {
    Work work = OneNode::work(WorkKind::kChanges, {});
    work.origin = NodeId(reader);
    return entries_of(node.workspace->execute(work), 3);
  };
  update(0);
  EXPECT_THAT(news(7), ElementsAre(std::pair(0U, 1.0F)));
  update(2);
  EXPECT_THAT(news(7), ElementsAre(std::pair(2U, 3.0F)));
  EXPECT_THAT(news(8), ElementsAre(std::pair(0U, 1.0F), std::pair(2U, 3.0F)));
  EXPECT_THAT(news(7), ElementsAre());
}

TEST(Workspace, LandsAPayloadInItsRange) {
  OneNode node;
  node.workspace->land({Buffer::kParameters, {4, 6}}, floats({7, 8}));
  node.workspace->land({Buffer::kGradients, {0, 2}, 1}, floats({9, 9}));
  EXPECT_THAT(node.parameters, ElementsAre(1, 2, 3, 4, 7, 8));
  EXPECT_THAT(node.gradients[1], ElementsAre(9, 9, 1, 1, 1, 1));
  EXPECT_EQ(node.workspace->view({Buffer::kGradients, {2, 3}, 1}).data(), &node.gradients[1][2]);
}

// Some of these ranges and lengths come from peers.
TEST(Workspace, RefusesWhatDoesNotFit) {
  OneNode node;
  Workspace& workspace = *node.workspace;
  EXPECT_THROW(workspace.view({Buffer::kNone, {0, 1}}), InvariantError);
  EXPECT_THROW(workspace.view({Buffer::kParameters, {5, 7}}), InvariantError);
  EXPECT_THROW(workspace.view({Buffer::kParameters, {-1, 2}}), InvariantError);
  EXPECT_ANY_THROW(workspace.view({Buffer::kGradients, {0, 1}, 2}));
  EXPECT_THROW(workspace.land({Buffer::kParameters, {0, 2}}, floats({1, 2, 3})), InvariantError);
  EXPECT_THROW(workspace.land({Buffer::kParameters, {0, 2}}, floats({1})), InvariantError);
  for (const WorkKind kind : {WorkKind::kUpdate, WorkKind::kReduce, WorkKind::kBlend,
                              WorkKind::kElastic, WorkKind::kSwap, WorkKind::kSwapped}) {
    EXPECT_THROW(workspace.execute(OneNode::work(kind, {floats({1, 2})})), InvariantError);
  }
  for (const WorkKind kind : {WorkKind::kSwap, WorkKind::kSwapped}) {
    EXPECT_THROW(workspace.execute(OneNode::work(kind, {floats({1, 2, 3})})), InvariantError);
  }
  EXPECT_THAT(node.parameters, ElementsAre(1, 2, 3, 4, 5, 6));
  OneNode deep(Codec::kDgc);
  for (const WorkKind kind : {WorkKind::kUpdate, WorkKind::kMerge, WorkKind::kPatch}) {
    Work work = OneNode::work(kind, {sparse({0, 0, 0, 1}, {3})});
    work.coded = true;
    EXPECT_THROW(deep.workspace->execute(work), InvariantError) << "an entry behind the range";
  }
}

// ---- in parts -----------------------------------------------------------------------------------

// Two nodes with the same numbers, of which one does its work in parts.
struct Twin {
  static constexpr std::size_t kSize = 3000;

  explicit Twin(Codec codec) {
    Strategy strategy;
    strategy.codec = codec;
    workspace.emplace(parameters, std::vector<std::span<float>>{gradients},
                      UpdateRule{.rate = {.base = 0.5F}, .momentum = 0.9F}, strategy,
                      Topology(2, 1, 0));
    workspace->keep_global({.outer = Outer::kNesterov, .rate = 0.7});
    std::ranges::copy(testing::values_of(testing::Flavour::kSmooth, kSize, 3), parameters.begin());
  }

  std::vector<float> parameters = testing::values_of(testing::Flavour::kSmooth, kSize, 1);
  std::vector<float> gradients = testing::values_of(testing::Flavour::kSmooth, kSize, 2);
  std::optional<Workspace> workspace;
};

std::vector<Payload> packed_sources(const Work& work, Codec codec) {
  std::vector<Payload> sources;
  for (std::uint64_t seed = 10; seed < 13; ++seed) {
    const auto values = testing::values_of(testing::Flavour::kSmooth,
                                           static_cast<std::size_t>(work.range.size()), seed);
    if (codec == Codec::kNone) {
      sources.push_back(floats(values));
      continue;
    }
    const auto dense = make_dense_codec(codec);
    std::vector<std::byte> bytes(static_cast<std::size_t>(dense->encoded_size(work.range.size())));
    dense->encode(values, bytes);
    sources.push_back(Payload::owning(std::move(bytes)));
  }
  return sources;
}

Payload in_parts(Workspace& workspace, const Work& work, std::int64_t parts) {
  WorkInParts doing = workspace.begin(work, parts);
  EXPECT_EQ(std::ssize(doing.parts), std::min(parts, (work.range.size() + 63) / 64));
  workspace.prepare(doing);
  do {
    for (std::size_t part = doing.parts.size(); part-- > 0;) {
      workspace.do_part(doing, part);
    }
  } while (workspace.more(doing));
  return doing.output;
}

RC_GTEST_PROP(WorkspaceProperties, WorkInPartsHasTheBitsOfWorkInOneGo, ()) {
  const auto codec = *rc::gen::element(Codec::kNone, Codec::kTruncate16, Codec::kBf16,
                                       Codec::kQuantise8, Codec::kQuantise4, Codec::kQuantise2);
  Work work;
  work.coded = codec != Codec::kNone;
  work.kind = work.coded ? *rc::gen::element(WorkKind::kUpdate, WorkKind::kSum, WorkKind::kReduce,
                                             WorkKind::kEncode, WorkKind::kDecode)
                         : *rc::gen::element(WorkKind::kUpdate, WorkKind::kSum, WorkKind::kReduce,
                                             WorkKind::kOuterGradient, WorkKind::kOuterStep,
                                             WorkKind::kTakeOver);
  work.range.begin = *rc::gen::inRange(0, 500);
  work.range.end = work.range.begin + *rc::gen::inRange(1, 2500);
  work.contributors = work.workers = 3;
  work.begun = *rc::gen::arbitrary<bool>();
  work.before = *rc::gen::inRange(0U, 4U);
  work.exact = *rc::gen::arbitrary<bool>();
  work.feedback = *rc::gen::arbitrary<bool>();
  work.keep = 0.25F;
  const auto parts = *rc::gen::inRange<std::int64_t>(1, 9);
  Twin one(codec);
  Twin other(codec);
  for (work.iteration = 1; work.iteration < 4; ++work.iteration) {
    work.sources =
        work.kind == WorkKind::kEncode ? std::vector<Payload>{} : packed_sources(work, codec);
    const Payload whole = one.workspace->execute(work);
    const Payload cut = in_parts(*other.workspace, work, parts);
    RC_ASSERT(std::ranges::equal(whole.bytes(), cut.bytes()));
    RC_ASSERT(one.parameters == other.parameters);
    RC_ASSERT(one.gradients == other.gradients);
    RC_ASSERT(std::ranges::equal(one.workspace->global_parameters(),
                                 other.workspace->global_parameters()));
  }
}

}  // namespace
}  // namespace sluice
