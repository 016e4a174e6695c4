#pragma once

#include "base/result.h"
#include "wire/message.h"

namespace sluice {

// Which messages the nodes of a job may send each other. A driver that receives from other
// processes checks each message before it does anything else with it.
class MessageRules {
 public:
  virtual ~MessageRules() = default;

  // The error says what is wrong. If there is none, all indices lie inside the job and the payload
  // has the right length.
  virtual Result<void> check(const Message& message) const = 0;
};

}  // namespace sluice
