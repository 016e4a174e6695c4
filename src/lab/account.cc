#include "lab/account.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "lab/process.h"

namespace sluice::lab {
namespace {

std::uint32_t bit_of(int capability) { return std::uint32_t{1} << capability; }

}  // namespace

Result<Account> find_account(const std::string& name) {
  const passwd* const entry = getpwnam(name.c_str());
  if (entry == nullptr) {
    return Error(fmt::format("is \"{}\", and this machine has no such user", name));
  }
  return Account{name, entry->pw_dir, entry->pw_uid, entry->pw_gid};
}

Result<void> continue_as(const Account& account) {
  if (initgroups(account.name.c_str(), account.group) != 0 ||
      setresgid(account.group, account.group, account.group) != 0 ||
      setresuid(account.user, account.user, account.user) != 0) {
    return system_error("the command cannot run as " + account.name);
  }
  setenv("HOME", account.home.c_str(), 1);
  setenv("USER", account.name.c_str(), 1);
  setenv("LOGNAME", account.name.c_str(), 1);
  return {};
}

Result<void> copy_nsenter(const std::string& nsenter, const std::string& to) {
  std::error_code failed;
  std::filesystem::copy_file(nsenter, to, failed);
  if (failed) {
    return Error(to + ": " + failed.message());
  }
  // To enter namespaces, a mount namespace among them, and to see those of root's processes.
  static_assert(std::endian::native == std::endian::little, "the kernel's format");
  vfs_cap_data granted{};
  granted.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  granted.data[0].permitted =
      bit_of(CAP_SYS_ADMIN) | bit_of(CAP_SYS_CHROOT) | bit_of(CAP_SYS_PTRACE);
  if (setxattr(to.c_str(), "security.capability", &granted, XATTR_CAPS_SZ_2, 0) != 0) {
    return system_error(to + ": its capabilities cannot be set");
  }
  return {};
}

}  // namespace sluice::lab
