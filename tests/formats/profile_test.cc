#include "formats/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "support/matrices.h"
#include "support/temporary_folder.h"

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

json toy() {
  return json::parse(R"({"name":"toy","batch":4,"layers":[
      {"name":"L1","params":2,"forward_us":1.0,"backward_us":2.5},
      {"name":"L2","params":0,"forward_us":0.000001,"backward_us":0}]})");
}

std::string profile_complaint(const std::string& text) {
  const auto profile = parse_profile(text, "p.json");
  return profile ? "" : profile.error().message();
}
std::string complaint_of(const json& value) { return profile_complaint(value.dump()); }

TEST(ProfileTest, ReadsTheFormat) {
  const auto profile = parse_profile(toy().dump(), "p.json");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->name, "toy");
  EXPECT_EQ(profile->batch, 4);
  EXPECT_EQ(profile->device, "");
  ASSERT_EQ(profile->layers.size(), 2U);
  EXPECT_EQ(profile->layers[0].name, "L1");
  EXPECT_EQ(profile->layers[0].params, 2);
  EXPECT_EQ(profile->layers[0].forward, from_us(1));
  EXPECT_EQ(profile->layers[0].backward, from_us(2.5));
  EXPECT_EQ(profile->layers[1].forward, Duration(1));
}

TEST(ProfileTest, AddsUpAndLaysOut) {
  const auto profile = *parse_profile(toy().dump(), "p.json");
  EXPECT_EQ(profile.forward(), Duration(1'000'001));
  EXPECT_EQ(profile.backward(), Duration(2'500'000));
  EXPECT_EQ(profile.compute(), Duration(3'500'001));
  const auto layers = profile.layout();
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].range, (Range{0, 2}));
  EXPECT_TRUE(layers[1].range.empty());
}

TEST(ProfileTest, TheDeviceIsOptional) {
  json value = toy();
  value["device"] = "P4000";
  EXPECT_EQ(parse_profile(value.dump(), "p.json")->device, "P4000");
}

TEST(ProfileTest, EveryKeyIsNeeded) {
  for (const char* key : {"name", "batch", "layers"}) {
    json value = toy();
    value.erase(key);
    EXPECT_THAT(complaint_of(value), StartsWith(std::string("p.json: ") + key + ": is missing"));
  }
  for (const char* key : {"params", "forward_us", "backward_us"}) {
    json value = toy();
    value["layers"][1].erase(key);
    EXPECT_THAT(complaint_of(value),
                StartsWith(std::string("p.json: layers[1] \"L2\": ") + key + ": is missing"));
  }
  json value = toy();
  value["layers"][1].erase("name");
  EXPECT_THAT(complaint_of(value), StartsWith("p.json: layers[1]: name: is missing"));
}

TEST(ProfileTest, UnknownKeysAreRefused) {
  json value = toy();
  value["bach"] = 1;
  EXPECT_THAT(complaint_of(value), StartsWith("p.json: bach: is not a known key"));
  EXPECT_THAT(complaint_of(value), HasSubstr("did you mean batch?"));
  value = toy();
  value["layers"][0]["flops"] = 1;
  EXPECT_THAT(complaint_of(value),
              StartsWith("p.json: layers[0] \"L1\": flops: is not a known key"));
}

TEST(ProfileTest, WrongValuesAreRefused) {
  const auto with = [](const char* key, const json& wrong) {
    json value = toy();
    value["layers"][0][key] = wrong;
    return complaint_of(value);
  };
  EXPECT_THAT(with("params", -1), StartsWith("p.json: layers[0] \"L1\": params: is -1, expected"));
  EXPECT_THAT(with("params", 1.5), HasSubstr("params: is 1.5, expected an integer"));
  EXPECT_THAT(with("params", "2"), HasSubstr("params: is \"2\", expected an integer"));
  EXPECT_THAT(with("params", UINT64_MAX), HasSubstr("params: is 18446744073709551615, expected"));
  EXPECT_THAT(with("forward_us", -0.1), HasSubstr("forward_us: is -0.1, expected a number"));
  EXPECT_THAT(with("backward_us", nullptr), HasSubstr("backward_us: is null, expected a number"));
  EXPECT_THAT(with("forward_us", 1e300), HasSubstr("forward_us: is 1e+300, expected a number"));
  EXPECT_THAT(with("name", 3), StartsWith("p.json: layers[0]: name: is 3, expected text"));

  json value = toy();
  value["batch"] = 0;
  EXPECT_THAT(complaint_of(value), StartsWith("p.json: batch: is 0, expected an integer from 1"));
  value = toy();
  value["layers"] = json::array();
  EXPECT_THAT(complaint_of(value),
              StartsWith("p.json: layers: is [], expected a list with at least"));
  value["layers"] = {1};
  EXPECT_THAT(complaint_of(value), StartsWith("p.json: layers[0]: is 1, expected a table"));
}

TEST(ProfileTest, NumbersBeyondAllDoublesAreRefused) {
  EXPECT_THAT(profile_complaint(R"({"name":"x","batch":1,"layers":[
      {"name":"L","params":1,"forward_us":1e999,"backward_us":1}]})"),
              StartsWith("p.json: is not JSON: "));
  EXPECT_THAT(profile_complaint(R"({"name":"x","batch":NaN,"layers":[]})"),
              StartsWith("p.json: is not JSON"));
}

TEST(ProfileTest, SumsThatOverflowAreRefused) {
  json value = toy();
  for (json& layer : value["layers"]) {
    layer["params"] = 600'000'000'000;
  }
  EXPECT_THAT(complaint_of(value), StartsWith("p.json: layers[1] \"L2\": params: brings the sum"));
  value = toy();
  for (json& layer : value["layers"]) {
    layer["backward_us"] = 5e10;
  }
  EXPECT_THAT(complaint_of(value),
              StartsWith("p.json: layers[1] \"L2\": forward_us, backward_us: bring the sum"));
}

TEST(ProfileTest, WhatIsNoProfileIsRefused) {
  EXPECT_THAT(profile_complaint(""), StartsWith("p.json: is not JSON: "));
  EXPECT_THAT(profile_complaint("[1]"), StartsWith("p.json: is [1], expected a table"));
  EXPECT_THAT(profile_complaint("{} x"), StartsWith("p.json: is not JSON: "));
}

TEST(ProfileTest, ReadsFiles) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_profile(folder.write("p.json", toy().dump()))->name, "toy");
  const std::string missing = folder.path() / "none.json";
  EXPECT_EQ(read_profile(missing).error().message(),
            missing + ": cannot be read: No such file or directory");
}

RC_GTEST_PROP(ProfileProperty, AnyBytesGiveAProfileOrOneLine, (std::string bytes)) {
  const std::string message = profile_complaint(bytes);
  RC_ASSERT(message.find('\n') == std::string::npos);
}

RC_GTEST_PROP(ProfileProperty, AnyChangeOfAByteGivesAProfileOrOneLine, (char byte)) {
  std::string text = toy().dump();
  text[*rc::gen::inRange<std::size_t>(0, text.size())] = byte;
  const std::string message = profile_complaint(text);
  RC_ASSERT(message.find('\n') == std::string::npos);
}

RC_GTEST_PROP(ProfileProperty, GoodProfilesAreReadAsTheyAre, ()) {
  json layers = json::array();
  std::int64_t params = 0;
  const auto count = *rc::gen::inRange(1, 20);
  for (int i = 0; i < count; ++i) {
    const auto size = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
    params += size;
    layers.push_back(
        {{"name", "L"}, {"params", size}, {"forward_us", i}, {"backward_us", i / 8.0}});
  }
  const auto read = parse_profile(json{{"name", ""}, {"batch", 1}, {"layers", layers}}.dump(), "p");
  RC_ASSERT(static_cast<bool>(read));
  RC_ASSERT(total_params(read->layout()) == params);
  RC_ASSERT(read->forward() == from_us(count * (count - 1) / 2.0));
  RC_ASSERT(read->backward() == from_us(count * (count - 1) / 16.0));
}

RC_GTEST_PROP(ProfileProperty, WhatIsWrittenIsReadAgain, (bool estimated)) {
  const auto time = [] { return Duration(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000)); };
  Profile made{.name = "net",
               .batch = 8,
               .device = "K80",
               .estimated = estimated,
               .source = "me",
               .layers = {}};
  const auto count = *rc::gen::inRange(1, 20);
  for (int i = 0; i < count; ++i) {
    made.layers.push_back(
        {"L", *rc::gen::inRange<std::int64_t>(0, 1'000'000), time(), time(), time(), time()});
    made.layers.back().matrix = testing::some_matrix(made.layers.back().params);
  }
  const TemporaryFolder folder;
  const std::string path = folder.path() / "p.json";
  RC_ASSERT(static_cast<bool>(write_profile(path, made)));
  const auto read = read_profile(path);
  RC_ASSERT(static_cast<bool>(read));
  RC_ASSERT(read->name == made.name);
  RC_ASSERT(read->batch == made.batch);
  RC_ASSERT(read->device == made.device);
  RC_ASSERT(read->estimated == made.estimated);
  RC_ASSERT(read->source == made.source);
  RC_ASSERT(read->layers == made.layers);
}

TEST(ProfileTest, ScalesTimesAndParameters) {
  Profile profile;
  profile.layers = {{"a", 100, from_us(10), from_us(20)},
                    {"b", 0, from_us(1), from_us(0)},
                    {"c", 3, from_us(0), from_us(7)}};
  const Profile half = scaled(profile, 2, 0.1);
  EXPECT_EQ(half.layers[0].params, 10);
  EXPECT_EQ(half.layers[0].forward, from_us(20));
  EXPECT_EQ(half.layers[0].backward, from_us(40));
  EXPECT_EQ(half.layers[1].params, 0);
  EXPECT_EQ(half.layers[2].params, 1);
  EXPECT_EQ(half.compute(), from_us(76));
}

TEST(ProfileTest, ALayerMayHaveAMatrix) {
  Profile profile;
  profile.layers = {{"a", 100, from_us(1), from_us(1)}, {"b", 50, from_us(1), from_us(1)}};
  profile.layers[1].matrix = {2, 6, 8};
  const std::vector<Layer> layers = profile.layout();
  EXPECT_EQ(layers[1].matrix, (Matrix{102, 6, 8}));
  EXPECT_EQ(untimed(layers[1]).matrix, profile.layers[1].matrix);
  EXPECT_EQ(untimed(layers[0]).matrix, Matrix{});
  const LayerProfile half = scaled(profile, 1, 0.5).layers[1];
  EXPECT_EQ(half.matrix, (Matrix{1, 3, 8}));
  EXPECT_LE(half.matrix.range().end, half.params);
  EXPECT_EQ(scaled(profile, 1, 0.1).layers[1].matrix, Matrix{});
}

TEST(ProfileTest, AMatrixLiesInItsLayer) {
  const auto complaint = [](const char* matrix) {
    const auto read = parse_profile(
        std::string(R"({"name": "", "batch": 1, "layers": [{"name": "L", "params": 50, )") +
            R"("forward_us": 1, "backward_us": 1, )" + matrix + "}]}",
        "p");
    return read ? "" : read.error().message();
  };
  EXPECT_EQ(complaint(R"("rows": 6, "columns": 8)"), "");
  EXPECT_EQ(complaint(R"("rows": 6, "columns": 8, "matrix_begin": 2)"), "");
  for (const char* matrix :
       {R"("rows": 6, "columns": 8, "matrix_begin": 3)", R"("rows": 6)", R"("columns": 8)",
        R"("matrix_begin": 1)", R"("rows": 1000000000000, "columns": 1000000000000)"}) {
    EXPECT_NE(complaint(matrix).find("expected a matrix within the 50 parameters"),
              std::string::npos)
        << matrix;
  }
}

TEST(ProfileTest, MicroBatchesAreComputedBeforeTheLastBackwardPass) {
  Profile profile;
  profile.batch = 8;
  profile.layers = {{"a", 100, from_us(10), from_us(20)}, {"b", 3, from_us(1), from_us(7)}};
  const Profile four = accumulated(profile, 4);
  EXPECT_EQ(four.batch, 32);
  EXPECT_EQ(four.compute(), 4 * profile.compute());
  EXPECT_EQ(four.layers[0], profile.layers[0]);
  EXPECT_EQ(four.layers[1].forward, from_us(1 + 3 * 38));
  EXPECT_EQ(four.backward(), profile.backward());
  EXPECT_EQ(accumulated(profile, 1).layers, profile.layers);
}

TEST(ProfileTest, TheShippedProfilesHaveThePublishedSizes) {
  const auto params = [](const std::string& name) {
    const auto profile =
        read_profile(SLUICE_SOURCE_DIR "/profiles/p4000-roofline/" + name + ".json");
    return profile ? total_params(profile->layout()) : -1;
  };
  EXPECT_EQ(params("alexnet"), 61'100'840);
  EXPECT_EQ(params("resnet18"), 11'689'512);
  EXPECT_EQ(params("resnet50"), 25'557'032);
  EXPECT_EQ(params("vgg16"), 138'357'544);
  EXPECT_EQ(params("vgg19"), 143'667'240);
  EXPECT_EQ(params("googlenet"), 13'004'888);
}

}  // namespace
}  // namespace sluice
