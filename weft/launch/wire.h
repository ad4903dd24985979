// Messages over one connection, as they come and as far as they go.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "weft/launch/loop.h"
#include "weft/launch/message.h"

namespace weft::launch {

/// Never calls back from send(): a connection that broke meanwhile is told from the loop. Frames of more than
/// `largest` bytes, bytes that are no message, and a peer that leaves more than 16 MiB unread break it too.
class Wire {
 public:
  struct Events {
    std::function<void(const Message&)> heard;
    std::function<void(const std::string& why)> broken;  // once; may destroy this wire
  };
  Wire(Loop& loop, Descriptor socket, std::size_t largest, Events events);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void send(const Message& message);
  /// The system's number for what broke it; 0: it was closed, or we had enough of it.
  int error() const { return error_; }
  /// What it keeps of this connection.
  std::size_t bytes_held() const { return in_.capacity() + out_.capacity(); }

 private:
  void on(std::uint32_t events);
  bool read_some();
  void push();
  void listen();
  void broke(const std::string& why);
  void failed(int error);
  Loop& loop_;
  Descriptor socket_;
  std::size_t largest_;
  Events events_;
  std::string in_, out_;
  bool writing_ = false;
  int error_ = 0;
  std::uint64_t breaking_ = 0;
  std::shared_ptr<int> life_ = std::make_shared<int>();  // expires when an event destroys us
};

}  // namespace weft::launch
