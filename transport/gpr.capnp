# The wire of gpr: this and what it imports is the only definition of what two nodes say to each
# other.
#
# Every message is one Frame behind the fixed header of transport/frame.h; page content follows the
# message as raw bytes and is never part of it. Order of a session:
#
#   TLS 1.3 with the token as pre-shared key          plain TCP or a unix socket
#     initiator              acceptor                   initiator              acceptor
#     hello             ->                              claim             ->
#                       <-   welcome | refuse                             <-   challenge | refuse
#                                                       proof             ->
#                                                       hello             ->
#                                                                         <-   welcome | refuse
#   then session, ping, pong both ways, and bye as the last word of either.
@0xb3e9a5d1c07f4e62;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gpr::wire");

using Handshake = import "handshake.capnp";

struct Frame {
  union {
    session @0 :SessionMessage;
    ping @1 :Ping;
    pong @2 :Ping;
    bye @3 :Bye;
    claim @4 :Handshake.Claim;
    challenge @5 :Handshake.Challenge;
    proof @6 :Handshake.Proof;
    hello @7 :Handshake.Hello;
    welcome @8 :Handshake.Welcome;
    refuse @9 :Handshake.Refuse;
  }
}

# --- session: pages, system calls, crossings -------------------------------------------------

struct SessionMessage {
  union {
    nothing @0 :Void;
    echo @1 :Echo;
    processStart @2 :ProcessStart;      # home: make a fragment with this layout
    processStarted @3 :ProcessStarted;  # acceptor: done, or why not
    processEnd @4 :ProcessEnd;          # home: end the fragment
    processGone @5 :ProcessGone;        # acceptor: it has ended
    crossing @6 :Crossing;              # a thread goes on at the receiver; raw: extended state
    call @7 :CallRequest;               # a system call for home; raw: the marshalled call
    callDone @8 :CallReply;             # raw: what the call wrote
    mapping @9 :MappingChange;          # the sender's address space changed
    signal @10 :SignalDelivery;         # deliver it where the thread is
    pages @11 :PageMessage;             # coherence; raw: page content
    futexWoken @12 :FutexWake;
    shadowEnd @13 :ThreadId;            # home: this thread is gone
    action @14 :ActionChange;           # home: the disposition of a signal changed
    freeze @15 :Freeze;                 # home: no thread may run there; acceptor: none does now
    futexWaiting @16 :FutexWaiters;     # before a frame that could carry pages away
    filters @17 :FilterChange;          # home: seccomp filters for all threads of the process
    forkBarrier @18 :ForkBarrier;       # all said before has been heard; comes twice, see below
    processFork @19 :ProcessFork;       # home: make a fragment that is a copy of another
    processForked @20 :ProcessStarted;  # acceptor: its memory is, or why not; it does not run yet
    unfilled @21 :UnfilledPage;         # acceptor: a thread waits for what only the program has
    mirror @22 :MirroredCall;           # home: the process has called it, on another node
    interrupt @23 :Interrupt;           # acceptor: a call that waits at home is to end with EINTR
    profile @24 :ProfileUse;            # acceptor: one that stood by is in force
    usageQuestion @25 :UsageQuestion;   # home: what has been used there?
    usageAnswer @26 :UsageAnswer;
    fdNames @27 :FdNames;
    filesGone @28 :FilesGone;           # home: nobody has a name of them any more
    heir @29 :Heir;
    keptCall @30 :KeptCall;
    keptDone @31 :KeptDone;
    layout @32 :Layout;                 # home: mappings of the process that begins next
    memoryPolicy @33 :MemoryPolicy;     # acceptor: the thread has set it there
    recall @34 :Recall;                 # home: all threads of the process are to come home
  }
}

# Descriptors of home that are names of open files of the acceptor, by monitor/home/fd_names.h. A
# file has the number that the acceptor gave it, which is never 0.
struct FdName { number @0 :Int32; file @1 :UInt64; }
struct FdNames { pid @0 :Int32; names @1 :List(FdName); }  # home, before a thread comes for them
struct FilesGone { files @0 :List(UInt64); }
# Home: a thread there has a child, which has its parent's descriptors of the acceptor.
struct Heir { parent @0 :Int32; child @1 :Int32; }
# Home: a process that has no fragment there calls close, close_range, dup2, dup3 or fcntl, about
# descriptors that are kept for it.
struct KeptCall { cookie @0 :UInt32; pid @1 :Int32; number @2 :UInt32; args @3 :List(UInt64); }
struct KeptDone { cookie @0 :UInt32; result @1 :Int64; file @2 :UInt64; }  # of dup2: to be named

struct Freeze { pid @0 :Int32; on @1 :Bool; number @2 :UInt32; }  # not on: they may go on
struct ProfileUse { name @0 :Text; path @1 :Text; }  # the file that the program uses
struct UsageAnswer { cookie @0 :UInt32; used @1 :Usage; state @2 :ThreadState; }
# monitor/tracee/thread_state.h; letter 0: not there
struct ThreadState { letter @0 :UInt8; waitsIn @1 :Text; }
struct Usage {  # monitor/node/usage.h
  totalNs @0 :UInt64; userNs @1 :UInt64; minorFaults @2 :UInt64; majorFaults @3 :UInt64;
  peak @4 :UInt64; anonymous @5 :UInt64; file @6 :UInt64; shared @7 :UInt64;  # bytes
}
# pid and tid: who asks. id: of the process or thread in question; 0: who asks.
struct UsageQuestion {
  cookie @0 :UInt32; pid @1 :Int32; tid @2 :Int32; ofThread @3 :Bool; id @4 :Int32;
  memory @5 :Bool;
  state @6 :Bool;  # and what does tid do, or the first thread?
}
struct Recall { pid @0 :Int32; on @1 :Bool; }  # not on: those that come may stay
struct Interrupt { pid @0 :Int32; tid @1 :Int32; wait @2 :UInt32; }

# Of the program, not of gpr.
struct SeccompFilter {
  flags @0 :UInt32;  # SECCOMP_FILTER_FLAG_*
  code @1 :Data;     # struct sock_filter, one after the other
}

# That every kernel must have heard of: membarrier(MEMBARRIER_CMD_REGISTER_*), and
# arch_prctl(ARCH_REQ_XCOMP_PERM).
struct MirroredCall { pid @0 :Int32; number @1 :UInt32; args @2 :List(UInt64); }

struct UnfilledPage {
  pid @0 :Int32;
  tid @1 :Int32;     # 0: the kernel, or who acts for it
  address @2 :UInt64;
  write @3 :Bool;
}

struct FilterChange {
  pid @0 :Int32;
  filters @1 :List(SeccompFilter);  # the oldest first
}

# Home sends it with and behind everything, once as an urgent frame and once as bulk: it holds all
# pages of the process for a fork. The acceptor answers both likewise, when no page is on its way
# into or out of the program's memory.
struct ForkBarrier { pid @0 :Int32; }

# The memory of a process that stands still, page by page as it is. Both nodes copy what they know
# of its objects.
struct ProcessFork {
  parent @0 :Int32;
  child @1 :Int32;                 # 0: there is none, and nothing to wait for
  noHandlers @2 :Bool;             # CLONE_CLEAR_SIGHAND
  affinity @3 :Data;               # of its thread, as in ProcessStart
  clearTid @4 :UInt64;             # likewise
  memoryPolicy @5 :List(UInt64);   # likewise
}

struct ProcessEnd {
  pid @0 :Int32;
  memoryGone @1 :Bool;  # home has none of it any more: after an exec
  newImage @2 :Bool;    # the process goes on, and its descriptors are kept for that
  neverStarted @3 :Bool;  # only what is kept for it goes; there is no answer
}

struct ThreadId { pid @0 :Int32; tid @1 :Int32; }

# set_mempolicy(2), as monitor/tracee/memory_policy.h has it.
struct MemoryPolicy { pid @0 :Int32; tid @1 :Int32; words @2 :List(UInt64); }

# One mapping: a view of a memory object, whole pages, addresses in bytes.
struct MappingView {
  begin @0 :UInt64;
  end @1 :UInt64;
  prot @2 :UInt32;   # PROT_*
  shared @3 :Bool;
  file @4 :Bool;     # untouched pages have content, which node 0 knows
  object @5 :UInt32;
  objectPage @6 :UInt64;
  birth @7 :UInt8;     # the node to which untouched pages belong
  codeClass @8 :UInt8; # mm/address_space.h: CodeClass
  objectPages @9 :UInt64;  # of shared memory: what lies beyond is SIGBUS
  mayWrite @10 :Bool;
  growsDown @11 :Bool;     # MAP_GROWSDOWN
  path @12 :Text;          # of a file of the acceptor, from there
  anchored @13 :Bool;      # nobody but its birth node may map it: a device, a shared file of its
  mainStack @14 :Bool;
  sealed @15 :Bool;        # mseal(2)
  source @16 :UInt32;      # the acceptor's name for the file of its own that this shows; 0: none
  sourceOffset @17 :UInt64;  # where in it, in bytes, `begin` is
  follows @18 :Bool;       # shared memory shows the same file: a page that is not touched changes
}

# Right before a ProcessStart or ProcessFork: the mappings and objects that it is about. There may
# be more than one message can hold, so there are as many of these as it takes.
struct Layout {
  pid @0 :Int32;                   # of the new process
  mappings @1 :List(MappingView);  # all; of a ProcessFork: MADV_WIPEONFORK
  absent @2 :List(AddressRange);   # of a ProcessFork: MADV_DONTFORK
  copies @3 :List(UInt32);         # likewise, in turn: an object of the parent's, the child's copy
}

struct ProcessStart {
  pid @0 :Int32;
  name @1 :Text;
  vdsoBegin @3 :UInt64;  # 0: none; where [vvar] begins and [vdso] ends at home
  vdsoEnd @4 :UInt64;
  actions @5 :List(SignalAction);
  mixed @6 :Bool;        # program code may run on both nodes: futex wakes are told
  chaosSeed @7 :UInt64;  # 0: threads cross only where they must
  fdBase @8 :UInt32;     # descriptors from here on are the acceptor's; 0: it has none
  bpf @9 :Bool;          # it may be used where the acceptor can
  filters @10 :List(SeccompFilter);  # that its thread is under
  newImage @11 :Bool;    # of an exec, not a fork: descriptors that close on exec are gone
  limitsMemory @13 :Bool;  # RLIMIT_AS, by which home's kernel judges
  gravity @12 :Bool;     # threads go home where their calls are made, if their code runs anywhere
  affinity @14 :Data;    # of its thread; empty: the program has not set it
  mayUseTiles @2 :Bool;  # of AMX: the process has asked for leave
  clearTid @15 :UInt64;  # what the end of its thread clears there: set_tid_address(2); 0: nothing
  barriers @16 :UInt32;  # commands of membarrier(2) by which it has registered
  fdLast @17 :UInt32;    # and end with this one; 0: they do not
  memoryPolicy @18 :List(UInt64);  # of its thread, as it set it at the acceptor; empty: it has not
  notesRseq @19 :Bool;   # it was attached: rseq(2) is home's to answer
}

struct SignalAction { signal @0 :UInt32; action @1 :Data; }  # struct sigaction as the kernel has it
struct ActionChange { pid @0 :Int32; action @1 :SignalAction; }
struct ProcessStarted {
  pid @0 :Int32;
  error @1 :Text;    # empty: it stands
  guards @2 :Bool;   # the acceptor's kernel has guard pages
  lowestAddress @3 :UInt64;  # below it the acceptor's kernel maps nothing (vm.mmap_min_addr)
}

struct ProcessGone {
  pid @0 :Int32;
  used @1 :Usage;     # by the fragment
  # Of the whole session so far, at the acceptor:
  faults @2 :UInt64;
  pagesIn @3 :UInt64;
  pagesOut @4 :UInt64;
  callsHome @5 :UInt64;
  callsNative @6 :UInt64;  # those the worker saw and did there
  pendingTimers @7 :UInt64; # a new image begins: signals of its timers that are pending there
  reason @8 :Text;          # why it ended unasked; empty: home wanted it
  callsFdOwner @9 :UInt64;  # by name or on mapping, on files of the acceptor; of the whole session
  usedPaths @10 :List(UInt32);  # of the session: which of Hello.paths decided anything, from 0
  usedCalls @11 :List(UInt32);  # the same of Hello.calls
  callsByRule @12 :UInt64;      # of those calls, of the whole session
  waitedNs @13 :UInt64;         # for pages
}

struct Crossing {
  pid @0 :Int32;
  tid @1 :Int32;
  registers @2 :Data;      # user_regs_struct
  signalMask @3 :UInt64;
  altStack @4 :Data;       # stack_t; empty: as it is at the receiver
  visit @6 :Bool;          # for memory that only the receiver may use
  robustList @5 :UInt64;   # its address; 0: as it is at the receiver
  missed @7 :List(UInt64); # pages it had to wait for at the sender: number * 2, + 1 to write
  filters @8 :List(SeccompFilter);  # to the acceptor: that it is under and was not told of there
  byGravity @9 :Bool;      # to home: nothing but its calls and pages draws it there
  cpuModes @10 :UInt8;     # to the acceptor: PR_SET_TSC, ARCH_SET_CPUID; 0: as it is there
  affinity @11 :Data;      # to the acceptor: as it has been set; empty: as it is there
  clearTid @12 :UInt64;    # of a recalled thread: what its end clears; 0: nothing
}

struct CallRequest {
  pid @0 :Int32;
  tid @1 :Int32;
  number @2 :UInt32;
  args @3 :List(UInt64);
  noReply @4 :Bool;
  registers @5 :Data;      # for calls that start a process: what its first thread has
  extendedState @6 :Data;
  signalMask @7 :UInt64;   # with registers: of the thread, now
  repeatable @8 :Bool;     # it may be made again, after the handler of a signal that is on its way
  ownPages @9 :UInt64;     # with registers: how many the process has at the acceptor, if its memory
                           # can be copied there; else 0
  wait @10 :UInt32;        # its name for an Interrupt, of this thread; 0: none will come
  # With registers, of clone3: set_tid, and for CLONE_INTO_CGROUP the descriptor. args are its flags
  # without the signal, stack, parent_tid or pidfd, child_tid, tls and exit_signal.
  setTid @11 :List(Int32);
  cgroup @12 :UInt32;
  file @13 :UInt64;        # of dup2 and dup3: the acceptor's, which gets a name; 0: home's. Of
                           # epoll_ctl not 0: what is to be watched is the acceptor's
}

struct CallReply {
  pid @0 :Int32;
  tid @1 :Int32;
  result @2 :Int64;        # the kernel's own, restart codes included
  signal @3 :Data;         # siginfo of what interrupted it, to deliver before it returns
  serial @4 :UInt32;       # of that signal, see SignalDelivery; 0: there is none
  names @5 :List(FdName);  # not empty: it was not made; these are names, which decides who makes it
  elsewhere @6 :Bool;      # it was not made: the thread is to make it at home, for a third node
}

struct MappingChange {
  pid @0 :Int32;
  union {
    map @1 :MappingView;      # replaces what was there
    unmap @2 :AddressRange;
    protect @3 :Protect;
    discard @4 :AddressRange; # madvise: the content is gone
    move @5 :Move;
    resize @6 :Resize;        # shared memory was truncated or extended
    forget @7 :UInt32;        # no process maps this shared memory any more
    lock @8 :Lock;            # mlock, munlock
    fills @9 :ProgramFills;   # a userfaultfd of the program's own
    usedAtHome @10 :UInt32;   # this shared memory, which others use, too
    guard @11 :Guard;         # MADV_GUARD_INSTALL, MADV_GUARD_REMOVE
    mark @12 :UInt32;         # to be answered with `applied` when all changes before are applied
    applied @13 :UInt32;
    seal @14 :AddressRange;   # mseal
    follow @15 :AddressRange; # from now on MappingView.follows
  }
}

struct Resize {
  object @0 :UInt32;
  pages @1 :UInt64;
}

struct AddressRange { begin @0 :UInt64; end @1 :UInt64; }

struct Lock {
  begin @0 :UInt64;
  end @1 :UInt64;
  locked @2 :Bool;
  onFault @3 :Bool;  # MLOCK_ONFAULT
  future @4 :UInt8;  # mlockall, of mappings to come: 1 + LockOfNew; 0: nothing
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
    on @2 :Bool;     # from now on, or not any more
    wake @3 :Void;   # who waits for pages of it looks again
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
  kept @4 :UInt32;  # MREMAP_DONTUNMAP: the object that is seen at the old place now; 0: none
  keptBirth @5 :UInt8;  # its birth node
}

struct SignalDelivery {
  pid @0 :Int32;
  tid @1 :Int32;    # 0: SIGSTOP holds the whole process where it is, SIGCONT lets it go on
  info @2 :Data;    # siginfo_t
  fatal @3 :Bool;   # acceptor: it has no handler, end the process with it
  handled @4 :Bool; # acceptor: its handler has begun; home: none comes before it, let it run
  mask @5 :UInt64;  # acceptor, with handled: of the thread, in the handler
  serial @6 :UInt32;  # of each that home passes on; the acceptor's answer has the same. 0: it was
                      # caused there. Highest bit: others wait, see monitor/node/signal_wire.h
}

struct FutexWake {
  pid @0 :Int32;
  address @1 :UInt64;
  count @2 :Int32;
  bitset @3 :UInt32;
  shared @4 :Bool;   # who waits did not say FUTEX_PRIVATE_FLAG
}

# Where the sender's threads wait: a set of hashed pages, see bpf/call_layout.h.
struct FutexWaiters {
  bits @0 :List(UInt64);
}

# mm/page_protocol.h says what these mean. Contents are kinds, one byte a page; the bytes of the
# pages that have some follow in the raw part, in order.
struct PageMessage {
  clock @0 :UInt64;
  object @1 :UInt32;
  first @2 :UInt64;
  count @3 :UInt32;
  epochs @4 :List(UInt64);
  union {
    request @5 :PageRequest;
    grant @6 :PageGrant;
    recall @7 :PageRecall;
    surrender @8 :PageSurrender;
    push @9 :PagePush;
    refused @10 :UInt8;  # the anchor's node
    ack @11 :UInt32;     # the collect; count says how many pages
    census @12 :UInt32;  # the collect
    touched @13 :PageTouched;
  }
}

struct PageRequest {
  must @0 :UInt32;
  access @1 :UInt8;
  have @2 :UInt8;
  tid @3 :Int32;
  age @4 :UInt64;
}

struct PageGrant {
  presence @0 :UInt8;
  tid @1 :Int32;
  collect @2 :UInt32;
  contents @3 :Data;
}

struct PageRecall {
  leave @0 :UInt8;
  wantData @1 :Bool;
  optional @2 :Bool;
  age @3 :UInt64;
  node @4 :UInt8;
  tid @5 :Int32;
  round @6 :UInt32;
}

struct PageSurrender {
  left @0 :UInt8;
  contents @1 :Data;
  round @2 :UInt32;
}

struct PageTouched {
  collect @0 :UInt32;
  pushed @1 :UInt64;
  spans @2 :List(UInt64);  # first page and number of pages of each, in turn
}

struct PagePush {
  to @0 :UInt8;
  left @1 :UInt8;
  grant @2 :UInt8;
  tid @3 :Int32;
  contents @4 :Data;
}
# Answered by whoever measures the link; carries no meaning of its own.
struct Echo {
  id @0 :UInt64;
  wantedBytes @1 :UInt32;
}

# --- link ------------------------------------------------------------------------------------

struct Ping {
  id @0 :UInt64;
  clock @1 :Handshake.ClockSample;  # in pongs of the handshake: when the sender answered
}

struct Bye {
  reason @0 :Text;  # why the sender ends the session, for the peer's user to read
}
