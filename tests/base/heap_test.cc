#include "base/heap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <map>
#include <vector>

namespace sluice {
namespace {

// Whether anybody looks at the root between two changes makes no difference.
RC_GTEST_PROP(HeapProperties, GivesTheSmallestKeyFirst, (const std::vector<bool>& looks)) {
  Heap<int, int> heap;
  std::map<int, int> sorted;
  std::size_t changes = 0;
  for (const int key : *rc::gen::container<std::vector<int>>(rc::gen::inRange(-50, 50))) {
    if (key < -20 && !sorted.empty()) {
      heap.pop();
      sorted.erase(sorted.begin());
    } else if (sorted.try_emplace(key, key * 2).second) {
      heap.push(key, key * 2);
    }
    RC_ASSERT(heap.empty() == sorted.empty());
    if (changes < looks.size() && !looks[changes++]) {
      continue;
    }
    RC_ASSERT(sorted.empty() || heap.key() == sorted.begin()->first);
    RC_ASSERT(sorted.empty() || heap.value() == sorted.begin()->second);
  }
}

}  // namespace
}  // namespace sluice
