# What an acceptor has used and counted: parts of the messages of gpr.capnp.
@0xc58e0b61f97a2d43;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gpr::wire");

struct Usage {  # monitor/node/usage.h
  totalNs @0 :UInt64; userNs @1 :UInt64; minorFaults @2 :UInt64; majorFaults @3 :UInt64;
  peak @4 :UInt64; anonymous @5 :UInt64; file @6 :UInt64; shared @7 :UInt64;  # bytes
}

# Of the whole session so far, at the acceptor: monitor/node/node_counts.h.
struct NodeCounts {
  faults @0 :UInt64;
  pagesIn @1 :UInt64;
  pagesOut @2 :UInt64;
  waitedNs @3 :UInt64;      # time spent waiting for pages
  callsHome @4 :UInt64;
  callsNative @5 :UInt64;   # those that the worker saw and made there
  callsFdOwner @6 :UInt64;  # on files of the acceptor, by a name at home or for a mapping
  callsByRule @7 :UInt64;   # those that a rule of Hello.calls has decided
  callsDelegated @8 :UInt64;  # about files of home, answered there
  filesDelegated @9 :UInt64;  # how many such files
  callsRemembered @10 :UInt64;  # about paths of home, answered there from earlier answers
  shownContents @11 :UInt64;  # mappings that show contents which the acceptor had before
}
