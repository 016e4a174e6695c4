#pragma once

#include <cstddef>
#include <vector>

namespace sluice {

// A queue whose least key comes first. Keys must differ: give them a sequence number. Entries are
// small and trivially copyable; four children a node make it shallower than a binary heap.
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

  // Moves the hole at the root down to where `entry` belongs.
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
