// An encoder and a decoder of LSTMs with attention, after Sockeye (Hieber et al., 2017): a deep
// one, and one with two layers each and its default attention, for IWSLT15. The heaviest layer, the
// source's embedding, is used first.
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <limits>
#include <string>
#include <vector>

#include "data/text.h"
#include "torch/models/families.h"
#include "torch/module_network.h"

namespace sluice {
namespace {

constexpr std::int64_t kWidth = 512;  // of an embedding and of a state

// One layer. LibTorch computes a stack of layers as one operator, which could not begin before the
// parameters of all of them are in.
torch::nn::LSTM make_lstm(std::int64_t in, std::int64_t out) {
  return torch::nn::LSTM(torch::nn::LSTMOptions(in, out).batch_first(true));
}

at::Tensor states_of(torch::nn::LSTM& lstm, const at::Tensor& x) {
  return std::get<0>(lstm->forward(x));
}

// Reads each sentence forwards and backwards; each direction yields half of a state.
class Bidirectional final : public torch::nn::Module {
 public:
  Bidirectional()
      : forward_(register_module("forward", make_lstm(kWidth, kWidth / 2))),
        backward_(register_module("backward", make_lstm(kWidth, kWidth / 2))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths) {
    const at::Tensor turned = turn_round(x, lengths);
    const at::Tensor forwards = states_of(forward_, x);
    const at::Tensor backwards = turn_round(states_of(backward_, turned), lengths);
    return at::cat({forwards, backwards}, 2);
  }

 private:
  // Reverses the words of each sentence and leaves the padding in place.
  static at::Tensor turn_round(const at::Tensor& x, const at::Tensor& lengths) {
    const at::Tensor place = at::arange(x.size(1), lengths.options()).unsqueeze(0);
    const at::Tensor length = lengths.unsqueeze(1);
    const at::Tensor from = at::where(place < length, length - 1 - place, place);
    return x.gather(1, from.unsqueeze(2).expand_as(x));
  }

  torch::nn::LSTM forward_;
  torch::nn::LSTM backward_;
};

// The encoded sentence as a mean, weighed by the scores of its words.
at::Tensor weighed(const at::Tensor& scores, const at::Tensor& encoded, const at::Tensor& padding) {
  const at::Tensor weights =
      scores.masked_fill(padding, -std::numeric_limits<float>::infinity()).softmax(1);
  return at::bmm(weights.unsqueeze(1), encoded).squeeze(1);
}

// Luong's general attention: weighs the encoded sentence by a state of the decoder and combines the
// two.
class Attention final : public torch::nn::Module {
 public:
  Attention() {
    const torch::nn::Linear score(torch::nn::LinearOptions(kWidth, kWidth).bias(false));
    const torch::nn::Linear combination(2 * kWidth, kWidth);
    score_ = register_parameter("score", score->weight.detach());
    weight_ = register_parameter("weight", combination->weight.detach());
    bias_ = register_parameter("bias", combination->bias.detach());
  }

  // `encoded` is sentences x words x width.
  static at::Tensor keys(const at::Tensor& encoded) { return encoded; }

  // `state` is sentences x width, `keys` those of the encoded sentences; `padding` is a mask of
  // sentences x words.
  at::Tensor forward(const at::Tensor& state, const at::Tensor& keys, const at::Tensor& encoded,
                     const at::Tensor& padding) {
    const at::Tensor query = at::linear(state, score_).unsqueeze(2);
    const at::Tensor context = weighed(at::bmm(keys, query).squeeze(2), encoded, padding);
    return at::linear(at::cat({context, state}, 1), weight_, bias_).tanh();
  }

 private:
  at::Tensor score_;
  at::Tensor weight_;
  at::Tensor bias_;
};

// Bahdanau's attention: the scores come from a hidden layer.
class MlpAttention final : public torch::nn::Module {
 public:
  MlpAttention() {
    const torch::nn::Linear query(torch::nn::LinearOptions(kWidth, kWidth).bias(false));
    const torch::nn::Linear key(torch::nn::LinearOptions(kWidth, kWidth).bias(false));
    const torch::nn::Linear score(torch::nn::LinearOptions(kWidth, 1).bias(false));
    const torch::nn::Linear combination(2 * kWidth, kWidth);
    query_ = register_parameter("query", query->weight.detach());
    key_ = register_parameter("key", key->weight.detach());
    score_ = register_parameter("score", score->weight.detach());
    weight_ = register_parameter("weight", combination->weight.detach());
    bias_ = register_parameter("bias", combination->bias.detach());
  }

  at::Tensor keys(const at::Tensor& encoded) { return at::linear(encoded, key_); }

  at::Tensor forward(const at::Tensor& state, const at::Tensor& keys, const at::Tensor& encoded,
                     const at::Tensor& padding) {
    const at::Tensor hidden = keys.add(at::linear(state, query_).unsqueeze(1)).tanh();
    const at::Tensor context = weighed(at::linear(hidden, score_).squeeze(2), encoded, padding);
    return at::linear(at::cat({context, state}, 1), weight_, bias_).tanh();
  }

 private:
  at::Tensor query_;
  at::Tensor key_;
  at::Tensor score_;
  at::Tensor weight_;
  at::Tensor bias_;
};

class Encoder final : public torch::nn::Module {
 public:
  explicit Encoder(std::size_t layers)
      : first_(register_module("0", std::make_shared<Bidirectional>())) {
    for (std::size_t i = 1; i < layers; ++i) {
      further_.push_back(register_module(std::to_string(i), make_lstm(kWidth, kWidth)));
    }
  }

  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths) {
    at::Tensor states = first_->forward(x, lengths);
    for (torch::nn::LSTM& layer : further_) {
      states = states_of(layer, states);
    }
    return states;
  }

 private:
  std::shared_ptr<Bidirectional> first_;
  std::vector<torch::nn::LSTM> further_;
};

// The modules under the names decoder.0 and decoder.1; the net runs them.
struct Decoder final : torch::nn::Module {
  torch::nn::LSTMCell first = register_module("0", torch::nn::LSTMCell(2 * kWidth, kWidth));
  torch::nn::LSTM second = register_module("1", make_lstm(kWidth, kWidth));
};

template <class AttentionOf>
class Sockeye final : public torch::nn::Module {
 public:
  Sockeye(std::int64_t source_words, std::int64_t target_words, std::size_t encoder_layers)
      : source_embedding_(
            register_module("source_embedding", torch::nn::Embedding(source_words, kWidth))),
        encoder_(register_module("encoder", std::make_shared<Encoder>(encoder_layers))),
        target_embedding_(
            register_module("target_embedding", torch::nn::Embedding(target_words, kWidth))),
        decoder_(register_module("decoder", std::make_shared<Decoder>())),
        attention_(register_module("attention", std::make_shared<AttentionOf>())),
        output_(register_module("output", torch::nn::Linear(kWidth, target_words))) {}

  // `pairs` are pairs of rows as in a TextSet.
  at::Tensor forward(const at::Tensor& pairs) {
    const at::Tensor source = pairs.select(1, 0);
    const at::Tensor padding = source.eq(kPadding);
    const at::Tensor encoded =
        encoder_->forward(source_embedding_(source), padding.logical_not().sum(1));
    const at::Tensor target = target_embedding_(pairs.select(1, 1));
    const at::Tensor states = states_of(decoder_->second, attend(target, encoded, padding));
    return output_(states).flatten(0, 1);
  }

 private:
  // Word by word, because the attention of one word is an input of the next.
  at::Tensor attend(const at::Tensor& target, const at::Tensor& encoded,
                    const at::Tensor& padding) {
    const at::Tensor keys = attention_->keys(encoded);
    at::Tensor found = at::zeros({target.size(0), kWidth}, target.options());
    std::tuple<at::Tensor, at::Tensor> state{found, found};
    std::vector<at::Tensor> all;
    for (std::int64_t word = 0; word < target.size(1); ++word) {
      state = decoder_->first(at::cat({target.select(1, word), found}, 1), state);
      found = attention_->forward(std::get<0>(state), keys, encoded, padding);
      all.push_back(found);
    }
    return at::stack(all, 1);
  }

  torch::nn::Embedding source_embedding_;
  std::shared_ptr<Encoder> encoder_;
  torch::nn::Embedding target_embedding_;
  std::shared_ptr<Decoder> decoder_;
  std::shared_ptr<AttentionOf> attention_;
  torch::nn::Linear output_;
};

}  // namespace

std::unique_ptr<Network> make_sockeye(const SampleForm& form) {
  return network_of(std::make_shared<Sockeye<Attention>>(form.words, form.classes, 3));
}

std::unique_ptr<Network> make_sockeye_iwslt15(const SampleForm& form) {
  return network_of(std::make_shared<Sockeye<MlpAttention>>(form.words, form.classes, 2));
}

}  // namespace sluice
