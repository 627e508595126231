// Conversion of Hello and Welcome to and from the wire.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "transport/frame.h"
#include "transport/handshake.h"

namespace gpr {

void write_hello(const Hello& hello, wire::Hello::Builder to);
Hello read_hello(wire::Hello::Reader from);
void write_welcome(const Welcome& welcome, wire::Welcome::Builder to);
Welcome read_welcome(wire::Welcome::Reader from);

// A whole frame without raw content as bytes, and back.
Result<std::vector<std::byte>> frame_bytes(FrameBuilder& frame);
Result<ReceivedFrame> frame_of(std::span<const std::byte> bytes);

}  // namespace gpr
