// A device whose memory is a directory: its storages have places in recipes instead of bytes.
#include <cstring>
#include <list>
#include <map>

#include "weft/base/error.h"
#include "weft/exchange/their_weights.h"
#include "weft/tensor/kernels.h"

namespace weft::exchange {

class TheirDevice final : public Device {
 public:
  explicit TheirDevice(const TheirWeights& weights) : weights_(weights) {}

  Tensor tensor(const Recipe& recipe, Dtype dtype) {
    Storage& storage =
        storages_.emplace_back(*this, nullptr, recipe.shape.elements() * size_of(dtype), Use::weights);
    places_[&storage] = {&recipe, dtype};
    return {StorageRef(&storage), recipe.shape, dtype};
  }

  const char* name() const override { return "another program's directory"; }
  StorageRef allocate(std::int64_t, Use) override { read_only(); }
  void recycle(Storage&) noexcept override {}  // all go with the device
  Kernels& kernels() override { read_only(); }
  bool host_visible() const override { return false; }
  Fence copy_from_host(Storage&, std::int64_t, const void*, std::int64_t) override { read_only(); }
  Fence copy_to_host(void* to, const Storage& from, std::int64_t offset, std::int64_t bytes) override {
    const TensorSource& place = places_.at(&from);
    const std::int64_t width = size_of(place.dtype);
    if (offset % width != 0 || bytes % width != 0)
      fail(Kind::internal, "exchange: bytes ", offset, " to ", offset + bytes, " are no whole numbers of ",
           weft::name(place.dtype));
    values_.resize(std::size_t(bytes / width));
    weights_.read(*place.recipe, offset / width, values_);
    visit_float(place.dtype, [&]<class T>() {
      for (std::size_t i = 0; i < values_.size(); ++i) {
        const T value(values_[i]);
        std::memcpy(static_cast<std::byte*>(to) + i * sizeof(T), &value, sizeof value);
      }
    });
    return {};
  }
  void forbid_fresh_memory(bool) override {}
  MemoryMeter memory() const override { return {}; }
  void forget_peaks() override {}

 private:
  struct TensorSource {
    const Recipe* recipe = nullptr;
    Dtype dtype = Dtype::f32;
  };
  [[noreturn]] static void read_only() {
    fail(Kind::internal, "exchange: another program's directory is only read");
  }
  const TheirWeights& weights_;
  std::list<Storage> storages_;
  std::map<const Storage*, TensorSource> places_;
  std::vector<float> values_;
};

Streamed::Streamed() = default;
Streamed::Streamed(Streamed&&) noexcept = default;
Streamed::~Streamed() = default;

Streamed stream(const TheirWeights& weights, const std::function<Dtype(const Recipe&)>& as) {
  Streamed out;
  out.device = std::make_unique<TheirDevice>(weights);
  for (const Recipe& recipe : weights.all())
    out.tensors.push_back(checkpoint::whole(recipe.name, out.device->tensor(recipe, as(recipe))));
  return out;
}

}  // namespace weft::exchange
