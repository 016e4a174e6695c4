#pragma once

#include "base/result.h"
#include "wire/message.h"

namespace sluice {

// What the nodes of a job may say to each other. A driver that gets messages from other processes
// asks before it does anything else with one.
class MessageRules {
 public:
  virtual ~MessageRules() = default;

  // The error tells what cannot be right. Of a legal message all indices lie inside the job, and
  // its payload fits what it is about.
  virtual Result<void> check(const Message& message) const = 0;
};

}  // namespace sluice
