// Streams and events of a runtime that is late on purpose.
//
// An operation waits in its stream's queue. Whoever waits, works: no thread runs behind the caller's back, so
// a failure repeats. That an operation may come too early or too late is found from clocks, not by luck: each
// knows which others must have come before it, and touch() compares them for every byte.
#include "tests/support/gpu/streams.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/support/gpu/runtime.h"

namespace emulated {

// These outlive whatever else is static: a device that a test left open ends with the process.
Runtime& runtime() {
  static Runtime* it = new Runtime;
  return *it;
}

Clock& host_clock() {
  thread_local Clock* it = new Clock;
  return *it;
}

CUstream_st& new_stream() {
  Runtime& r = runtime();
  r.streams.push_back(std::make_unique<CUstream_st>());
  r.streams.back()->id = std::uint32_t(r.streams.size() - 1);
  r.streams.back()->device = chosen_device();
  return *r.streams.back();
}

CUstream_st& stream_of(cudaStream_t stream) {
  if (runtime().streams.empty()) new_stream();
  return stream ? *stream : *runtime().streams[0];
}

namespace {

bool reach(Mark mark) {
  CUstream_st& stream = *runtime().streams[mark.stream];
  while (stream.done < mark.position)
    if (!advance(stream)) return false;
  return true;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t place_in(const CUgraph_st& graph, const CUstream_st& stream) {
  return std::size_t(std::find(graph.streams.begin(), graph.streams.end(), &stream) - graph.streams.begin());
}

}  // namespace

bool advance(CUstream_st& stream) {
  Runtime& r = runtime();
  if (stream.queue.empty() || stream.busy) return false;
  stream.busy = true;
  if (r.pace > 1 && r.random() % 2) advance(*r.streams[r.random() % r.streams.size()]);
  bool ready = true;
  for (const Mark& mark : stream.queue.front().after) ready = ready && reach(mark);
  if (ready) as_operation(stream.queue.front().turn);
  if (ready && stream.queue.front().ready) ready = stream.queue.front().ready();
  if (ready) {
    const Operation now = std::move(stream.queue.front());
    stream.queue.pop_front();
    now.act();
    ++stream.done;
    r.news.notify_all();
  }
  stream.busy = false;
  return ready;
}

void wait_for(Mark mark, Lock& lock) {
  Runtime& r = runtime();
  using Steady = std::chrono::steady_clock;
  const auto until =
      Steady::now() + std::chrono::duration_cast<Steady::duration>(std::chrono::duration<double>(r.patience));
  while (!reach(mark)) {
    bool moved = false;  // a collective may want the other ranks' streams to come
    for (std::size_t i = 0; i < r.streams.size(); ++i) moved = advance(*r.streams[i]) || moved;
    if (moved) continue;
    const auto next = r.others ? std::min(until, Steady::now() + std::chrono::milliseconds(1)) : until;
    if (r.news.wait_until(lock, next) == std::cv_status::no_timeout || next < until) continue;
    return report("the device waits for ranks that do not come");
  }
}

void wait_for(CUstream_st& stream, Lock& lock) {
  for (const Mark& mark : stream.waits) wait_for(mark, lock);
  wait_for(Mark{stream.id, stream.given}, lock);
  join(host_clock(), stream.clock);
}

void give(CUstream_st& stream, std::function<void()> act, std::function<bool()> ready) {
  if (stream.captures) {
    const std::size_t at = place_in(*stream.captures, stream);
    stream.captures->calls.push_back({at, std::move(act), std::move(ready)});
    return;
  }
  ++stream.given;
  join(stream.clock, host_clock());
  if (stream.clock.size() <= stream.id) stream.clock.resize(stream.id + 1);
  stream.clock[stream.id] = stream.given;
  stream.queue.push_back({std::move(act), std::move(ready), std::exchange(stream.waits, {}),
                          Turn{number(stream.id, stream.given), stream.clock}});
  runtime().news.notify_all();
  if (runtime().pace == eager) reach({stream.id, stream.given});
}

void record(CUevent_st& event, CUstream_st& stream) {
  event.in = stream.captures;
  if (stream.captures) {
    stream.captures->calls.push_back({place_in(*stream.captures, stream), {}, {}, &event, nullptr});
    return;
  }
  if (event.timed) {
    event.when = std::make_shared<double>(0);
    give(stream, [when = event.when] { *when = now(); }, {});
  } else if (!stream.waits.empty()) {
    give(stream, [] {}, {});  // it stands for what the stream waits for, too
  }
  event.mark = {stream.id, stream.given};
  event.clock = stream.clock;
}

void wait(CUstream_st& stream, CUevent_st& event) {
  if (event.in) {  // the capture spreads to this stream
    auto& streams = event.in->streams;
    const std::size_t at = place_in(*event.in, stream);
    if (at == streams.size()) streams.push_back(&stream);
    stream.captures = event.in;
    event.in->calls.push_back({at, {}, {}, nullptr, &event});
    return;
  }
  stream.waits.push_back(event.mark);
  join(stream.clock, event.clock);
}

void set_pace(unsigned pace) {
  const auto lock = hold();
  runtime().pace = pace;
  runtime().random.seed(pace);
  set_order(pace);
}

void set_patience(double seconds) { runtime().patience = seconds; }

void enqueue(void* stream, std::function<void()> act, std::function<bool()> ready) {
  const auto lock = hold();
  give(stream_of(static_cast<cudaStream_t>(stream)), std::move(act), std::move(ready));
}

}  // namespace emulated

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const auto lock = emulated::hold();
  emulated::stream_of(nullptr);
  *stream = &emulated::new_stream();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }  // what it has been given is still done
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  auto lock = emulated::hold();
  const CUstream_st& it = emulated::stream_of(stream);
  if (it.captures) return cudaErrorStreamCaptureUnsupported;
  if (it.done < it.given) ++emulated::meter().host_waits;
  emulated::wait_for(emulated::stream_of(stream), lock);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  auto lock = emulated::hold();
  for (std::size_t i = 0; i < emulated::runtime().streams.size(); ++i)
    if (CUstream_st& stream = *emulated::runtime().streams[i]; stream.device == emulated::chosen_device())
      emulated::wait_for(stream, lock);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  (*event)->device = emulated::chosen_device();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const auto lock = emulated::hold();
  if (event->device != emulated::stream_of(stream).device) return cudaErrorInvalidResourceHandle;
  emulated::record(*event, emulated::stream_of(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const auto lock = emulated::hold();
  emulated::wait(emulated::stream_of(stream), *event);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  auto lock = emulated::hold();
  if (emulated::runtime().streams.empty()) return cudaSuccess;
  if (emulated::runtime().streams[event->mark.stream]->done < event->mark.position)
    ++emulated::meter().host_waits;
  emulated::wait_for(event->mark, lock);
  emulated::join(emulated::host_clock(), event->clock);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto lock = emulated::hold();
  CUstream_st& stream = *emulated::runtime().streams[event->mark.stream];
  // Who asks again and again gets there, with the other ranks' streams where a collective wants them.
  if (stream.done < event->mark.position && !emulated::advance(stream))
    for (std::size_t i = 0; i < emulated::runtime().streams.size(); ++i)
      emulated::advance(*emulated::runtime().streams[i]);
  if (stream.done < event->mark.position) return cudaErrorNotReady;
  emulated::join(emulated::host_clock(), event->clock);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const auto lock = emulated::hold();
  if (!from->when || !to->when || from->device != to->device) return cudaErrorInvalidResourceHandle;
  for (const CUevent_st* event : {from, to})
    if (emulated::runtime().streams[event->mark.stream]->done < event->mark.position)
      return cudaErrorNotReady;
  *milliseconds = float(1e3 * (*to->when - *from->when));
  return cudaSuccess;
}

}  // extern "C"
