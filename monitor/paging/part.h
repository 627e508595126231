// What every part of a pager names: what they share, which is in core.h, and each other, which are
// in pager.h; fragments and their mappings.
#pragma once

namespace gpr {

class AddressSpace;
class Fragment;
class Pager;
struct Mapping;

namespace paging {

struct Core;
struct Piece;

}  // namespace paging

}  // namespace gpr
