#pragma once

#include <cstddef>
#include <vector>

namespace sluice {

// A min-heap. Keys must differ: include a sequence number. Entries should be small and must be
// trivially copyable. Four children per node make it shallower than a binary heap.
template <class Key, class T>
class Heap {
 public:
  bool empty() const { return entries_.empty(); }
  const Key& key() const { return entries_.front().key; }
  const T& value() const { return entries_.front().value; }

  void push(const Key& key, const T& value) {
    const Entry entry{key, value};
    std::size_t hole = entries_.size();
    entries_.push_back(entry);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / kChildren;
      if (!(entry.key < entries_[parent].key)) {
        break;
      }
      entries_[hole] = entries_[parent];
      hole = parent;
    }
    entries_[hole] = entry;
  }

  void pop() {
    const Entry last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) {
      sink(last);
    }
  }

 private:
  struct Entry {
    Key key;
    T value;
  };

  static constexpr std::size_t kChildren = 4;

  // Moves the hole at the root down to the place of `entry`.
  void sink(const Entry& entry) {
    const std::size_t size = entries_.size();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t first = hole * kChildren + 1;
      if (first >= size) {
        break;
      }
      std::size_t least = first;
      const std::size_t end = first + kChildren < size ? first + kChildren : size;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (entries_[child].key < entries_[least].key) {
          least = child;
        }
      }
      if (!(entries_[least].key < entry.key)) {
        break;
      }
      entries_[hole] = entries_[least];
      hole = least;
    }
    entries_[hole] = entry;
  }

  std::vector<Entry> entries_;
};

}  // namespace sluice
