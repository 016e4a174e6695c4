#pragma once

#include "drivers/processes/launch.h"

namespace sluice {

// Tunes how Open MPI sends a large message over TCP. By default it writes the message into the
// socket as one fragment, and everything else between the two processes waits behind it, even the
// permission to send urgent data: so we make fragments short. It also sends the first 192 KB
// through buffers, which costs copies and further messages: so we send everything from memory to
// memory. One read should bring a whole slice; by default it brings 30 KB. Where cores are idle,
// one of them empties the sockets while another fills them. Other MPIs ignore these variables; a
// value that the user has set stays.
void tune_long_messages(const Launch& launch);

// As the environment has it, where the user may have set it.
LongMessages long_messages_set();

}  // namespace sluice
