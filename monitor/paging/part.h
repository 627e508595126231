// What every part of a pager includes: the shared core (core.h), the fragments and their mappings.
// The parts see each other through pager.h.
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
