// Messages over TCP: each socket carries those of all circles in turn.
#pragma once

#include <memory>

#include "weft/comm/mail.h"
#include "weft/comm/tcp_meeting.h"

namespace weft {

/// The circle of all. What comes before anybody asked for it is kept.
std::unique_ptr<Mail> tcp_mail(const TcpSeat& seat, std::vector<Descriptor> sockets);

}  // namespace weft
