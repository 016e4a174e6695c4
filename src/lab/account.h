#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace sluice::lab {

// A user of this machine.
struct Account {
  std::string name;
  std::string home;
  uid_t user = 0;
  gid_t group = 0;
};

Result<Account> find_account(const std::string& name);

// From now on this process, and what it starts, has the rights and the home of that user. It must
// be root, and has no way back.
Result<void> continue_as(const Account& account);

// Makes a copy of nsenter with which a process without privileges can move into the namespaces of
// processes that it sees, and into no others: the copy has the capabilities for that, and what it
// starts has none.
Result<void> copy_nsenter(const std::string& nsenter, const std::string& to);

}  // namespace sluice::lab
