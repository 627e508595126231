# The messages before a session (gpr.capnp), and what the two sides say about themselves.
#
# The first members of Claim, Hello and Refuse never change, so that two builds with different
# protocol versions can tell each other so.
@0x8e1f4c92d6a35b70;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gpr::wire");

using Inventory = import "inventory.capnp".Inventory;
using Device = import "inventory.capnp".Device;

# Without TLS, both sides prove that they know the token: HMAC-SHA256 over both nonces.
struct Claim {
  protocolVersion @0 :UInt32;
  tokenId @1 :Text;
  nonce @2 :Data;  # 32 random bytes
}

struct Challenge {
  nonce @0 :Data;
  proof @1 :Data;
}

struct Proof {
  proof @0 :Data;
}

struct Hello {
  protocolVersion @0 :UInt32;
  software @1 :Text;   # "gpr 0.1.0"
  sessionId @2 :Text;
  nodeId @3 :UInt32;   # the node the acceptor becomes
  host @4 :Host;
  paths @5 :List(RemotePath);  # parts of the file tree that the acceptor provides
  rootLinks @6 :List(RootLink);
  vdso @7 :Data;  # home's image; empty: it has none
  devices @8 :DeviceRequest;
  wantInventory @9 :Bool;  # what the acceptor has, and then no session
  calls @10 :List(RemoteCall);  # that are made at the acceptor, whichever node the thread is on
  onlyLooks @11 :Bool;  # the welcome is all that it wants: no session, also not a place for one
  wantSessions @12 :Bool;  # likewise, and who else is there
  program @13 :Program;
  watchesFutexes @14 :Bool;  # its threads on several nodes may wake each other, and BPF may be used
}

# What runs in a session, for who asks the acceptor.
struct Program {
  name @0 :Text;  # its path
  user @1 :Text;
  pid @2 :Int32;
}

struct Session {
  id @0 :Text;      # the initiator's
  host @1 :Text;    # the same
  peer @2 :Text;    # from where it comes
  program @3 :Program;
  since @4 :Int64;  # seconds since 1970
  cpuNs @5 :UInt64;  # used here
  threads @6 :UInt32;  # that are here now
  bytesIn @7 :UInt64;  # over the link, from the acceptor's side
  bytesOut @8 :UInt64;
  devices @9 :List(Text);
  arrivals @10 :UInt64;    # of threads, so far
  faults @11 :UInt64;      # of its threads here
  calls @12 :UInt64;       # that were carried home for them
}

struct RemoteCall {
  number @0 :UInt16;
  family @1 :Int32;  # only if the first argument is this; -1: in any case
}

# Without a count: the named devices, even if other sessions have them. With one: so many of the
# named devices, or of all if there are no names, for this session alone.
struct DeviceRequest {
  count @0 :UInt32;
  names @1 :List(Text);  # an id, the beginning of a UUID, or a node, as in the inventory
}

# A link in home's root folder, such as /lib to usr/lib: files have two names there.
struct RootLink {
  name @0 :Text;    # without the slash
  target @1 :Text;  # absolute
}

# A glob matches a path, or a directory above it.
struct RemotePath {
  glob @0 :Text;        # as the program sees it, absolute
  target @1 :Text;      # what the acceptor shows there; empty: its own file of that name
  whenMissing @2 :Bool; # only what home does not have
  standby @3 :Text;     # the profile it waits for, until the program uses it; empty: in force now
}

struct Welcome {
  protocolVersion @0 :UInt32;
  software @1 :Text;
  sessionId @2 :Text;
  nodeId @3 :UInt32;
  host @4 :Host;
  devices @5 :List(Device);  # that the session has been given, in the order of its request
  inventory @6 :Inventory;   # where it was wanted
  standby @7 :List(Text);    # profiles among the Hello's that this host has something for
  sessions @8 :List(Session);  # where they were wanted
  keepsContents @9 :Bool;    # gpr.capnp: Content
}

struct Refuse {
  protocolVersion @0 :UInt32;  # of the side that refuses
  reason @1 :Text;
}

struct Host {
  hostName @0 :Text;
  kernelRelease @1 :Text;
  features @2 :List(Text);  # kernel features that probing has found
  pageSize @3 :UInt64;
  cpu @4 :Cpu;
  clock @5 :ClockSample;
  limits @6 :Limits;
  devices @7 :List(Text);  # device nodes that it offers, such as /dev/kvm
}

struct Cpu {
  vendor @0 :Text;
  model @1 :Text;
  count @2 :UInt32;
  xcr0 @3 :UInt64;       # extended-state components the kernel enabled
  xsaveBytes @4 :UInt32; # size of the extended state in standard format
  leaves @5 :List(CpuidLeaf);
}

struct CpuidLeaf {
  leaf @0 :UInt32; subleaf @1 :UInt32;
  eax @2 :UInt32; ebx @3 :UInt32; ecx @4 :UInt32; edx @5 :UInt32;
}

# Nanoseconds, read one right after the other.
struct ClockSample { realtimeNs @0 :Int64; monotonicNs @1 :Int64; boottimeNs @2 :Int64; }

struct Limits {
  openFilesSoft @0 :UInt64;
  openFilesHard @1 :UInt64;
  threadsMax @2 :UInt64;
  pidMax @3 :UInt64;
  mapCountMax @4 :UInt64;
}
