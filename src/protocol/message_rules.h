#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "wire/message.h"

namespace sluice {

// Which messages the nodes of a job may send each other. A driver that receives from other
// processes checks each message before it does anything else with it. One call at a time.
class MessageRules {
 public:
  virtual ~MessageRules() = default;

  // The error says what is wrong. If there is none, all indices lie inside the job and the payload
  // has the right length.
  virtual Result<void> check(const Message& message) const = 0;
  // The same for the contents of its payload, once the message has passed check(): what will be
  // used as an index lies inside the job.
  virtual Result<void> check_payload(const Message& message,
                                     std::span<const std::byte> payload) const = 0;
  // Whether each message comes once per iteration, in the order of iterations, as Repeats assumes.
  virtual bool is_once_per_iteration() const = 0;
};

}  // namespace sluice
