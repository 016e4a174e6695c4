#pragma once

#include <cstddef>
#include <vector>

namespace sluice {

// A min-heap. Keys must differ: include a sequence number. Entries should be small and must be
// trivially copyable. Four children per node make it shallower than a binary heap.
//
// What is popped leaves a hole at the root. A push fills it, if it comes before the next look at
// the root; so a pop and a push after it cost as much as one of them.
template <class Key, class T>
class Heap {
 public:
  bool empty() const { return size() == 0; }
  std::size_t size() const { return entries_.size() - (has_hole_ ? 1 : 0); }
  const Key& key() { return root().key; }
  const T& value() { return root().value; }

  void push(const Key& key, const T& value) {
    const Entry entry{key, value};
    if (has_hole_) {
      has_hole_ = false;
      return sink(entry);
    }
    entries_.push_back(entry);
    rise(entries_.size() - 1, entry);
  }

  void pop() {
    fill_hole();
    has_hole_ = true;
  }

 private:
  struct Entry {
    Key key;
    T value;
  };

  static constexpr std::size_t kChildren = 4;

  const Entry& root() {
    fill_hole();
    return entries_.front();
  }

  // With the last entry.
  void fill_hole() {
    if (!has_hole_) {
      return;
    }
    has_hole_ = false;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) {
      sink(last);
    }
  }

  // Fills the hole at the root. The hole sinks to the bottom first and `entry`, which was the last
  // or is new, rises from there: it hardly ever rises far, and nothing on the way down needs a
  // guess.
  void sink(const Entry& entry) {
    const std::size_t size = entries_.size();
    std::size_t hole = 0;
    std::size_t child = 1;
    for (; child + kChildren <= size; child = hole * kChildren + 1) {
      const std::size_t left = least(child, child + 1);
      const std::size_t right = least(child + 2, child + 3);
      child = least(left, right);
      entries_[hole] = entries_[child];
      hole = child;
    }
    if (child < size) {
      for (std::size_t other = child + 1; other < size; ++other) {
        child = least(child, other);
      }
      entries_[hole] = entries_[child];
      hole = child;
    }
    rise(hole, entry);
  }

  void rise(std::size_t hole, const Entry& entry) {
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

  std::size_t least(std::size_t a, std::size_t b) const {
    return entries_[b].key < entries_[a].key ? b : a;
  }

  std::vector<Entry> entries_;
  bool has_hole_ = false;
};

}  // namespace sluice
