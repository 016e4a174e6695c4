// The codecs against a short reference in PyTorch: golden/make_golden.py wrote what they should
// make of some gradients.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "codecs/block_top_k.h"
#include "codecs/deep_gradient.h"
#include "codecs/dense.h"
#include "codecs/error_feedback.h"
#include "codecs/sparse.h"

namespace sluice {
namespace {

using Vector = std::vector<float>;

const nlohmann::json& golden() {
  static const nlohmann::json file =
      nlohmann::json::parse(std::ifstream(SLUICE_SOURCE_DIR "/tests/codecs/golden/golden.json"));
  return file;
}

Vector gradient(std::size_t iteration) {
  return golden().at("gradients").at(iteration).get<Vector>();
}

Vector passed(const DenseCodec& codec, const Vector& values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(codec.encoded_size(std::ssize(values))));
  Vector decoded(values.size());
  codec.encode(values, bytes);
  codec.decode(bytes, decoded);
  return decoded;
}

TEST(GoldenCodecs, DenseOnesAreThoseOfTheReference) {
  for (const auto& [name, expected] : golden().at("decoded").items()) {
    const auto codec = make_dense_codec(*value_of(kCodecNames, name));
    EXPECT_EQ(passed(*codec, gradient(0)), expected.get<Vector>()) << name;
  }
}

TEST(GoldenCodecs, ErrorFeedbackIsThatOfTheReference) {
  for (const auto& [name, expected] : golden().at("feedback").items()) {
    const auto codec = make_dense_codec(*value_of(kCodecNames, name));
    Vector residual(gradient(0).size());
    const ErrorFeedback feedback(*codec, residual);
    for (std::size_t t = 0; t < expected.at("arrived").size(); ++t) {
      EXPECT_EQ(passed(feedback, gradient(t)), expected.at("arrived").at(t).get<Vector>())
          << name << ", iteration " << t;
    }
    EXPECT_EQ(residual, expected.at("residual").get<Vector>()) << name;
  }
}

// Also with the decay of SparseLoCo.
TEST(GoldenCodecs, TopKSendsAndKeepsWhatTheReferenceDoes) {
  const nlohmann::json& expected = golden().at("top-k");
  const BlockTopK codec({.block = expected.at("block"), .kept = expected.at("kept")});
  const auto decay = expected.at("decay").get<float>();
  Vector residual(gradient(0).size());
  for (std::size_t t = 0; t < expected.at("arrived").size(); ++t) {
    const Vector added = gradient(t);
    for (std::size_t i = 0; i < residual.size(); ++i) {
      residual[i] = decay * residual[i] + added[i];
    }
    Vector arrived(residual.size());
    codec.add(codec.take(residual), arrived);
    EXPECT_EQ(arrived, expected.at("arrived").at(t).get<Vector>()) << "iteration " << t;
  }
  const auto kept = expected.at("residual").get<Vector>();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_NEAR(residual[i], kept[i], 1e-6);
  }
}

// The sums may be contracted, so the last bits may differ; what is selected does not.
TEST(GoldenCodecs, DgcSelectsAndKeepsWhatTheReferenceDoes) {
  const nlohmann::json& expected = golden().at("dgc");
  const auto size = std::ssize(gradient(0));
  DeepGradientOptions options;
  options.sparsity = 1 - expected.at("k").get<double>() / static_cast<double>(size);
  options.clipping = false;
  options.warm_up = false;
  DeepGradient codec(options, {.momentum = expected.at("momentum")}, {{0, size}});
  for (std::size_t t = 0; t < expected.at("sent").size(); ++t) {
    const auto bytes = codec.encode(gradient(t), {}, {0, size}, static_cast<Iteration>(t) + 1);
    const auto sent = SparseView::parse(bytes, size);
    ASSERT_TRUE(sent);
    const auto positions =
        expected.at("sent").at(t).at("positions").get<std::vector<std::uint32_t>>();
    const auto values = expected.at("sent").at(t).at("values").get<Vector>();
    ASSERT_EQ(sent->entries(), positions.size());
    for (std::size_t e = 0; e < positions.size(); ++e) {
      EXPECT_EQ(sent->position(e), positions[e]);
      EXPECT_NEAR(sent->value(e), values[e], 1e-6);
    }
  }
  const auto kept = expected.at("residual").get<Vector>();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_NEAR(codec.residual()[i], kept[i], 1e-6);
  }
}

}  // namespace
}  // namespace sluice
