#include "base/heap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

namespace sluice {
namespace {

RC_GTEST_PROP(HeapProperties, GivesTheSmallestKeyFirst, ()) {
  Heap<int, int> heap;
  std::map<int, int> sorted;
  for (const int key : *rc::gen::container<std::vector<int>>(rc::gen::inRange(-50, 50))) {
    if (key < -20 && !sorted.empty()) {
      heap.pop();
      sorted.erase(sorted.begin());
    } else if (sorted.try_emplace(key, key * 2).second) {
      heap.push(key, key * 2);
    }
    RC_ASSERT(heap.empty() == sorted.empty());
    RC_ASSERT(sorted.empty() || heap.key() == sorted.begin()->first);
    RC_ASSERT(sorted.empty() || heap.value() == sorted.begin()->second);
  }
}

}  // namespace
}  // namespace sluice
