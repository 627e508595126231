// The stub as bytes, linked for GPR_STUB_CODE; its first byte is the entry point.
#pragma once

namespace gpr {

extern const unsigned char stub_image[];
extern const unsigned long stub_image_size;

}  // namespace gpr
