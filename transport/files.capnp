# Descriptors and open files that two nodes have to do with: parts of the messages of gpr.capnp.
@0xd1b7a3405e9c62f8;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gpr::wire");

# Home's descriptors that are names of open files of the acceptor (monitor/home/fd_names.h). `file`
# is the acceptor's number for the file, which is never 0.
struct FdName { number @0 :Int32; file @1 :UInt64; }
struct FdNames { pid @0 :Int32; names @1 :List(FdName); }  # home, before a thread that uses them
struct FilesGone { files @0 :List(UInt64); }
# Home: a thread there has forked. The child inherits the acceptor's descriptors of its parent.
struct Heir { parent @0 :Int32; child @1 :Int32; }
# Home: a process without a fragment there calls close, close_range, dup2, dup3 or fcntl on
# descriptors that the acceptor keeps for it.
struct KeptCall { cookie @0 :UInt32; pid @1 :Int32; number @2 :UInt32; args @3 :List(UInt64); }
struct KeptDone { cookie @0 :UInt32; result @1 :Int64; file @2 :UInt64; }  # of dup2: needs a name

# An open file of home that the acceptor answers for (monitor/home/delegations.h). `number` is its
# descriptor, `id` is never used again. The acceptor's answer has the file's offset.
struct Delegation {
  id @0 :UInt64;
  status @1 :Data;      # struct stat
  content @2 :UInt32;   # so many bytes of the raw part, the last, are what the file begins with
}
struct FileReturn { pid @0 :Int32; number @1 :Int32; id @2 :UInt64; offset @3 :UInt64; }

# An answer about a path holds until one of `ids` is gone, which are never used again
# (monitor/home/lookups.h).
struct Lookup {
  ids @0 :List(UInt32);
  absent @1 :Bool;     # there is nothing under that path, whatever is asked about it
  spare @2 :UInt32;    # so many descriptors the process can surely open
  serial @3 :UInt32;   # of the last LookupsGone before the answer was found to hold
  commonIds @4 :UInt32;         # so many of the ids, the first
  others @5 :List(LookupAhead);
  isLink @6 :Bool;              # it is the status of a symbolic link itself
}
# What the same call would answer about another path.
struct LookupAhead {
  name @0 :Data;
  ids @1 :List(UInt32);
  status @2 :Data;     # struct stat or statx, as the call wants it
  error @3 :UInt16;    # ENOENT, ENOTDIR: there is nothing under that path
  # As the program writes it, with a slash at its end. Empty: the directory of the call; then the
  # answer depends on the first `commonIds` of the answer's ids, too.
  directory @4 :Data;
}
struct LookupsGone { ids @0 :List(UInt32); all @1 :Bool; serial @2 :UInt32; }

# About the content of a file of home, which an acceptor may keep for later sessions
# (monitor/home/file_contents.h).
struct Content {
  digest @0 :Data;  # base/content_digest.h
  union {
    offer @1 :UInt64;         # home: it has the content, which is so many bytes
    wanted @2 :ContentPiece;  # acceptor: this part of it
    piece @3 :Void;           # home; raw: the part; none: it cannot be had any more
  }
}
struct ContentPiece { offset @0 :UInt64; bytes @1 :UInt32; }
