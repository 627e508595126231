# What a process has mapped, and how that changes: parts of the messages of gpr.capnp.
@0x9c41f5e2a7d06b3d;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gpr::wire");

# One mapping: a view of a memory object, whole pages, addresses in bytes.
struct MappingView {
  begin @0 :UInt64;
  end @1 :UInt64;
  prot @2 :UInt32;   # PROT_*
  shared @3 :Bool;
  file @4 :Bool;     # untouched pages have content, which node 0 has
  object @5 :UInt32;
  objectPage @6 :UInt64;
  birth @7 :UInt8;     # the node to which untouched pages belong
  codeClass @8 :UInt8; # mm/address_space.h: CodeClass
  objectPages @9 :UInt64;  # of shared memory; accesses beyond are SIGBUS
  mayWrite @10 :Bool;
  growsDown @11 :Bool;     # MAP_GROWSDOWN
  path @12 :Text;          # from the acceptor, of a file of its own
  anchored @13 :Bool;      # only its birth node may map it: a device, or a shared file of its own
  mainStack @14 :Bool;
  sealed @15 :Bool;        # mseal(2)
  source @16 :UInt32;      # the acceptor's id of the file of its own that is mapped; 0: none
  sourceOffset @17 :UInt64;  # the offset of `begin` in it, in bytes; or in what `content` names
  follows @18 :Bool;       # untouched pages change when other mappings write to the same file
  content @19 :Data;       # digest of the file of home that it shows; empty: unknown
}

# The mappings and objects for the ProcessStart or ProcessFork that follows. They may exceed the
# size of a message, so there may be several of these.
struct Layout {
  pid @0 :Int32;                   # of the new process
  mappings @1 :List(MappingView);  # all; for a ProcessFork, those of MADV_WIPEONFORK
  absent @2 :List(AddressRange);   # for a ProcessFork, those of MADV_DONTFORK
  copies @3 :List(UInt32);         # for a ProcessFork, pairs: an object, and the child's copy of it
}

struct MappingChange {
  pid @0 :Int32;
  union {
    map @1 :MappingView;      # replaces what was there
    unmap @2 :AddressRange;
    protect @3 :Protect;
    discard @4 :AddressRange; # madvise: the content is dropped
    move @5 :Move;
    resize @6 :Resize;        # shared memory was truncated or extended
    forget @7 :UInt32;        # no process maps this shared memory any more
    lock @8 :Lock;            # mlock, munlock
    fills @9 :ProgramFills;   # the program's own userfaultfd
    usedAtHome @10 :UInt32;   # other processes at home use this shared memory, too
    guard @11 :Guard;         # MADV_GUARD_INSTALL, MADV_GUARD_REMOVE
    mark @12 :UInt32;         # answer with `applied` when all earlier changes are applied
    applied @13 :UInt32;
    seal @14 :AddressRange;   # mseal
    follow @15 :AddressRange; # MappingView.follows is true from now on
    breakMove @16 :BreakMove; # acceptor: brk, which it has answered
  }
}

# Only after CallReply.movesBreak, and while no thread of the process has gone home since.
struct BreakMove {
  end @0 :UInt64;     # the new break, above the one before
  object @1 :UInt32;  # to which its new pages belong: breakObject, or one of the acceptor's
}

struct Resize { object @0 :UInt32; pages @1 :UInt64; }

struct AddressRange { begin @0 :UInt64; end @1 :UInt64; }

struct Lock {
  begin @0 :UInt64;
  end @1 :UInt64;
  locked @2 :Bool;
  onFault @3 :Bool;  # MLOCK_ONFAULT
  future @4 :UInt8;  # mlockall, for future mappings: 1 + LockOfNew; 0: no change
}

struct Guard {
  begin @0 :UInt64;
  end @1 :UInt64;
  install @2 :Bool;
}

struct ProgramFills {
  begin @0 :UInt64;
  end @1 :UInt64;
  union {
    on @2 :Bool;     # begins or ends
    wake @3 :Void;   # threads that wait for pages in the range check again
  }
}

struct Protect {
  begin @0 :UInt64;
  end @1 :UInt64;
  prot @2 :UInt32;
}

struct Move {
  from @0 :UInt64;
  oldSize @1 :UInt64;
  to @2 :UInt64;
  newSize @3 :UInt64;
  kept @4 :UInt32;  # MREMAP_DONTUNMAP: the object now mapped at the old place; 0: none
  keptBirth @5 :UInt8;  # its birth node
}
