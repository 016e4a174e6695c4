// Trains as one process of an MPI job, for loop_mpi_test.cc. Rank 0 prints what was found.
//
//   loop_program equal OPTIONS ...         a loop for each, such as preset=p3,order=fifo; compares
//                                          the results with those of one process
//   loop_program resumed FOLDER [OPTIONS]  a loop that stops twice and goes on; compares the result
//                                          with that of a loop that was never stopped
//   loop_program two                       steps of two models by turns, with two kinds of exchange
//   loop_program own                       the program initialises MPI, and runs two loops
//   loop_program throw                     rank 1 fails in its loop

#include <mpi.h>

#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>

#include "api/some_loops.h"

namespace {

sluice::LoopOptions options_of(const std::string& text) {
  sluice::LoopOptions options;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const std::string key = word.substr(0, word.find('='));
    const std::string value = word.substr(word.find('=') + 1);
    if (key == "every" || key == "fragments" || key == "outer_delay") {
      (key == "every"       ? options.every
       : key == "fragments" ? options.fragments
                            : options.outer_delay) = std::stoll(value);
      continue;
    }
    if (key == "outer_mix") {
      options.outer_mix = std::stod(value);
      continue;
    }
    (key == "preset"       ? options.preset
     : key == "exchange"   ? options.exchange.emplace()
     : key == "partition"  ? options.partition.emplace()
     : key == "order"      ? options.order.emplace()
     : key == "collective" ? options.collective.emplace()
     : key == "run"        ? options.run
     : key == "trace"      ? options.trace
                           : options.codec.emplace()) = value;
  }
  if (options.partition == "slice") {
    options.slice = 7;
  }
  return options;
}

void report(sluice::LoopWorker& worker, bool right) {
  const double share = worker.mean(right ? 1 : 0);
  if (worker.rank() == 0) {
    std::printf("%zu workers, %.2f of them right\n", worker.workers(), share);
  }
}

void compare(const sluice::LoopOptions& options) {
  sluice::run_loop([&](sluice::LoopWorker& worker) {
    const auto found = sluice::trained(worker, sluice::make_adam, options, 2);
    const auto right = options.every
                           ? sluice::expected_locally(worker.workers(), sluice::make_adam, options)
                           : sluice::expected(worker.workers(), sluice::make_adam);
    report(worker, sluice::near(found, right));
  });
}

void train_two() {
  sluice::run_loop([](sluice::LoopWorker& worker) {
    const sluice::LoopOptions local = options_of("preset=diloco,every=3");
    sluice::Net one = sluice::make_net(100 + worker.rank());
    sluice::Net other = sluice::make_net(100 + worker.rank());
    const auto adam = sluice::make_adam(one->parameters());
    const auto inner = sluice::make_adam(other->parameters());
    sluice::LoopModel& summed = sluice::attach(worker, one, *adam);
    sluice::LoopModel& stepped = sluice::attach(worker, other, *inner, local);
    for (std::int64_t step = 0; step < sluice::kSteps; ++step) {
      summed.step([&] { return sluice::loss_of(one, worker.rank(), step); });
      sluice::change_rate(*adam, step);
      stepped.step([&] { return sluice::loss_of(other, worker.rank(), step); });
      sluice::change_rate(*inner, step);
    }
    summed.wait();
    bool right =
        sluice::near(sluice::copies_of(one), sluice::expected(worker.workers(), sluice::make_adam));
    stepped.with_global_parameters([&] {
      right = right &&
              sluice::near(sluice::copies_of(other),
                           sluice::expected_locally(worker.workers(), sluice::make_adam, local));
    });
    report(worker, right);
  });
}

void resume(const std::string& folder, const sluice::LoopOptions& options) {
  std::vector<at::Tensor> found;
  for (const std::int64_t end : {std::int64_t{4}, std::int64_t{7}, sluice::kSteps}) {
    sluice::run_loop([&](sluice::LoopWorker& worker) {
      found = sluice::trained_until(worker, sluice::make_adam, end, folder, options);
    });
  }
  sluice::run_loop([&](sluice::LoopWorker& worker) {
    report(worker, sluice::equal(found, sluice::trained(worker, sluice::make_adam, options)));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argv[1];
  if (mode == "equal") {
    for (int i = 2; i < argc; ++i) {
      compare(options_of(argv[i]));
    }
  } else if (mode == "resumed") {
    resume(argv[2], options_of(argc > 3 ? argv[3] : ""));
  } else if (mode == "two") {
    train_two();
  } else if (mode == "own") {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    compare({});
    compare({});
    MPI_Finalize();
  } else {
    sluice::run_loop([](sluice::LoopWorker& worker) {
      sluice::Net net = sluice::make_net(1);
      const auto adam = sluice::make_adam(net->parameters());
      sluice::LoopModel& model = sluice::attach(worker, net, *adam);
      for (std::int64_t step = 0;; ++step) {
        model.step([&] {
          if (worker.rank() == 1 && step == 5) {
            throw std::runtime_error("the data has ended");
          }
          return sluice::loss_of(net, worker.rank(), step);
        });
      }
    });
  }
  return 0;
}
