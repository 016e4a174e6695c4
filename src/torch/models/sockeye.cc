// An encoder and a decoder of LSTMs with attention, after Sockeye (Hieber et al., 2017), sized
// for IWSLT15. The heaviest layer, the source's embedding, is used first.
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <limits>

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

  // `state` is sentences x width, `encoded` sentences x words x width; `padding` is a mask
  // of sentences x words.
  at::Tensor forward(const at::Tensor& state, const at::Tensor& encoded,
                     const at::Tensor& padding) {
    const at::Tensor query = at::linear(state, score_).unsqueeze(2);
    const at::Tensor scores = at::bmm(encoded, query)
                                  .squeeze(2)
                                  .masked_fill(padding, -std::numeric_limits<float>::infinity());
    const at::Tensor context = at::bmm(scores.softmax(1).unsqueeze(1), encoded).squeeze(1);
    return at::linear(at::cat({context, state}, 1), weight_, bias_).tanh();
  }

 private:
  at::Tensor score_;
  at::Tensor weight_;
  at::Tensor bias_;
};

class Encoder final : public torch::nn::Module {
 public:
  Encoder()
      : first_(register_module("0", std::make_shared<Bidirectional>())),
        second_(register_module("1", make_lstm(kWidth, kWidth))),
        third_(register_module("2", make_lstm(kWidth, kWidth))) {}

  at::Tensor forward(const at::Tensor& x, const at::Tensor& lengths) {
    return states_of(third_, states_of(second_, first_->forward(x, lengths)));
  }

 private:
  std::shared_ptr<Bidirectional> first_;
  torch::nn::LSTM second_;
  torch::nn::LSTM third_;
};

// The modules under the names decoder.0 and decoder.1; the net runs them.
struct Decoder final : torch::nn::Module {
  torch::nn::LSTMCell first = register_module("0", torch::nn::LSTMCell(2 * kWidth, kWidth));
  torch::nn::LSTM second = register_module("1", make_lstm(kWidth, kWidth));
};

class Sockeye final : public torch::nn::Module {
 public:
  Sockeye(std::int64_t source_words, std::int64_t target_words)
      : source_embedding_(
            register_module("source_embedding", torch::nn::Embedding(source_words, kWidth))),
        encoder_(register_module("encoder", std::make_shared<Encoder>())),
        target_embedding_(
            register_module("target_embedding", torch::nn::Embedding(target_words, kWidth))),
        decoder_(register_module("decoder", std::make_shared<Decoder>())),
        attention_(register_module("attention", std::make_shared<Attention>())),
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
    at::Tensor found = at::zeros({target.size(0), kWidth}, target.options());
    std::tuple<at::Tensor, at::Tensor> state{found, found};
    std::vector<at::Tensor> all;
    for (std::int64_t word = 0; word < target.size(1); ++word) {
      state = decoder_->first(at::cat({target.select(1, word), found}, 1), state);
      found = attention_->forward(std::get<0>(state), encoded, padding);
      all.push_back(found);
    }
    return at::stack(all, 1);
  }

  torch::nn::Embedding source_embedding_;
  std::shared_ptr<Encoder> encoder_;
  torch::nn::Embedding target_embedding_;
  std::shared_ptr<Decoder> decoder_;
  std::shared_ptr<Attention> attention_;
  torch::nn::Linear output_;
};

}  // namespace

std::unique_ptr<Network> make_sockeye(const SampleForm& form) {
  return network_of(std::make_shared<Sockeye>(form.words, form.classes));
}

}  // namespace sluice
