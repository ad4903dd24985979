#include "weft/data/look_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::data;
using ::testing::ElementsAre;

namespace {

/// Two samples of six tokens: documents of four and two, and of one and five.
HostBatch two_samples() {
  HostBatch batch;
  batch.samples = {7, 9};
  batch[Field::tokens] = {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
  batch[Field::labels] = {2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17};
  batch[Field::loss_mask] = {1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1};
  batch[Field::positions] = {0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3, 4};
  batch[Field::documents] = {0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1};
  return batch;
}

HostBatch seen(const HostBatch& batch, std::int64_t places, bool in_documents) {
  HostBatch further;
  further[Field::tokens] = {99};  // of a batch before
  look_ahead(batch, places, in_documents, further);
  return further;
}

}  // namespace

TEST(LookAhead, ends_with_samples) {
  const HostBatch further = seen(two_samples(), 2, false);
  EXPECT_THAT(further.samples, ElementsAre(7, 9));
  EXPECT_THAT(further[Field::tokens], ElementsAre(3, 4, 5, 6, 0, 0, 13, 14, 15, 16, 0, 0));
  EXPECT_THAT(further[Field::labels], ElementsAre(4, 5, 6, 7, 0, 0, 14, 15, 16, 17, 0, 0));
  EXPECT_THAT(further[Field::loss_mask], ElementsAre(0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 0, 0));
  EXPECT_THAT(further[Field::positions], ElementsAre(2, 3, 0, 1, 0, 0, 1, 2, 3, 4, 0, 0));
}

TEST(LookAhead, ends_with_documents_where_these_are_apart) {
  const HostBatch further = seen(two_samples(), 1, true);
  EXPECT_THAT(further[Field::tokens], ElementsAre(2, 3, 4, 0, 6, 0, 0, 13, 14, 15, 16, 0));
  EXPECT_THAT(further[Field::labels], ElementsAre(3, 4, 5, 0, 7, 0, 0, 14, 15, 16, 17, 0));
  EXPECT_THAT(further[Field::loss_mask], ElementsAre(1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0));
  EXPECT_THAT(further[Field::positions], ElementsAre(1, 2, 3, 0, 1, 0, 0, 1, 2, 3, 4, 0));
  HostBatch of_one = two_samples();
  of_one[Field::documents].clear();
  EXPECT_EQ(seen(of_one, 1, true)[Field::tokens], seen(two_samples(), 1, false)[Field::tokens]);
  EXPECT_THAT(seen(two_samples(), 3, true)[Field::tokens], ElementsAre(4, 0, 0, 0, 0, 0, 0, 15, 16, 0, 0, 0));
}

TEST(LookAhead, sees_nothing_behind_short_samples) {
  EXPECT_THAT(seen(two_samples(), 6, false)[Field::tokens], ::testing::Each(0));
  EXPECT_THAT(seen(two_samples(), 9, false)[Field::loss_mask], ::testing::Each(0));
}
