#include "weft/comm/tcp.h"

#include "weft/base/error.h"
#include "weft/comm/tcp_mail.h"

namespace weft {

int run_under_tcp(const TcpSeat& seat, const std::function<void(Communicator&)>& body,
                  const std::function<int()>& tell, Pulse* pulse) {
  try {
    const auto world = speak_by(tcp_mail(seat, meet(seat)), pulse);
    body(*world);
    world->barrier();
  } catch (...) {
    return tell();
  }
  return 0;
}

}  // namespace weft
