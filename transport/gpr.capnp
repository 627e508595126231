# The wire protocol of gpr: this file and those it imports define every message between nodes.
#
# A message is one Frame behind the fixed header of transport/frame.h. Page content follows the
# message as raw bytes and is never part of it. A session begins with these messages:
#
#   TLS 1.3 with the token as pre-shared key          plain TCP or a unix socket
#     home                   acceptor                   home                   acceptor
#     hello             ->                              claim             ->
#                       <-   welcome | refuse                             <-   challenge | refuse
#                                                       proof             ->
#                                                       hello             ->
#                                                                         <-   welcome | refuse
#   then session, ping and pong in both directions, and bye as the last message of either side.
@0xb3e9a5d1c07f4e62;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gpr::wire");

using Handshake = import "handshake.capnp";
using Counts = import "counts.capnp";
using Files = import "files.capnp";
using Space = import "address_space.capnp";

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
    # "home:" and "acceptor:" name the side that sends the message.
    processStart @2 :ProcessStart;      # home: make a fragment with this layout
    processStarted @3 :ProcessStarted;  # acceptor: done, or why not
    processEnd @4 :ProcessEnd;          # home: end the fragment
    processGone @5 :ProcessGone;        # acceptor: the fragment has ended
    crossing @6 :Crossing;              # a thread continues at the receiver; raw: extended state
    call @7 :CallRequest;               # acceptor: make this call at home; raw: marshalled buffers
    callDone @8 :CallReply;             # home: its result; raw: what the call wrote
    mapping @9 :Space.MappingChange;    # the sender's address space changed
    signal @10 :SignalDelivery;         # deliver it at the node that has the thread
    pages @11 :PageMessage;             # coherence; raw: page content
    futexWoken @12 :FutexWake;
    shadowEnd @13 :ThreadId;            # home: this thread has ended
    action @14 :ActionChange;           # home: the disposition of a signal changed
    freeze @15 :Freeze;                 # home: stop all threads there; acceptor: they have stopped
    futexWaiting @16 :FutexWaiters;     # sent before a frame that could take pages away
    filters @17 :FilterChange;          # home: seccomp filters for all threads of the process
    forkBarrier @18 :ForkBarrier;       # all earlier messages have been handled; sent twice
    processFork @19 :ProcessFork;       # home: make a fragment that is a copy of another
    processForked @20 :ProcessStarted;  # acceptor: its memory is copied, or why not; not running
    unfilled @21 :UnfilledPage;         # acceptor: a thread waits for a page the program must fill
    mirror @22 :MirroredCall;           # home: the process has made this call on another node
    interrupt @23 :Interrupt;           # acceptor: end a call that waits at home with EINTR
    profile @24 :ProfileUse;            # acceptor: a profile on standby is now in force
    usageQuestion @25 :UsageQuestion;   # home: what has been used there?
    usageAnswer @26 :UsageAnswer;
    fdNames @27 :Files.FdNames;
    filesGone @28 :Files.FilesGone;           # home: no descriptor there is a name of them any more
    heir @29 :Files.Heir;
    keptCall @30 :Files.KeptCall;
    keptDone @31 :Files.KeptDone;
    layout @32 :Space.Layout;           # home: mappings of the process that begins next
    memoryPolicy @33 :MemoryPolicy;     # acceptor: the thread has set it there
    homecoming @34 :Homecoming;         # home: all threads of the process are to come home
    observeQuestion @35 :ObserveQuestion;  # home: somebody looks; what is there now?
    observeAnswer @36 :ObserveAnswer;
    traceOrder @37 :Data;   # home: trace from now on (gpr_trace_order in bpf/); empty: no longer
    traceEvents @38 :Void;  # acceptor; raw: gpr_trace_event, one behind the other
    drain @39 :Void;        # acceptor: it is about to shut down; the session is to leave it
    futexMove @40 :FutexMove;           # move waiters there, too; or the answer: it is done
    fileReturn @42 :Files.FileReturn;   # home: give back a file; acceptor: here it is
    lookupsGone @43 :Files.LookupsGone;  # home: answers about paths no longer hold
    content @44 :Files.Content;
    timersHere @41 :Int32;  # acceptor: this process has timers of CPU time there, or had some
  }
}

struct Freeze { pid @0 :Int32; on @1 :Bool; number @2 :UInt32; }  # false: let them run
struct ProfileUse { name @0 :Text; path @1 :Text; }  # the path that the program used
struct UsageAnswer { cookie @0 :UInt32; used @1 :Counts.Usage; state @2 :ThreadState; }
# monitor/tracee/thread_state.h; letter 0: no such thread
struct ThreadState { letter @0 :UInt8; waitsIn @1 :Text; }
# pid and tid: the caller. id: the process or thread that it asks about; 0: itself.
struct UsageQuestion {
  cookie @0 :UInt32; pid @1 :Int32; tid @2 :Int32; ofThread @3 :Bool; id @4 :Int32;
  memory @5 :Bool;
  state @6 :Bool;  # also what tid, or the first thread, is doing
}
struct Homecoming { pid @0 :Int32; on @1 :Bool; debugged @2 :Bool; }  # RemoteProcess.goes_home
struct ObserveQuestion {
  cookie @0 :UInt32;
  pid @1 :Int32;           # of the process that it is about; 0: all of them
  threads @2 :Bool;        # what do they do?
  ranges @3 :List(UInt64); # of the process: begin and end of each, in turn. Which pages are there?
  registers @4 :Bool;      # and where do its threads stand? Those that run are stopped for that
}
struct ObserveAnswer {
  cookie @0 :UInt32;
  counts @1 :Counts.NodeCounts;
  used @2 :Counts.Usage;              # by the processes that live
  faultWaits @3 :List(UInt64);        # base/latency.h: its counts, and last its sum
  threads @4 :List(ObservedThread);   # no more than most_observed_threads
  resident @5 :List(UInt64);          # how many pages of each range
}
# monitor/tracee/thread_status.h, and what else the worker knows.
struct ObservedThread {
  pid @0 :Int32;
  tid @1 :Int32;
  here @2 :Bool;       # it runs there; else it is a shadow
  letter @3 :UInt8;
  waitsIn @4 :Text;
  call @5 :Int32;      # -1: none
  cpuNs @6 :UInt64;
  faults @7 :UInt64;
  pages @8 :UInt64;
  waitsForPage @9 :Bool;
  registers @10 :Data;     # user_regs_struct; empty: it was not stopped, and these are known
  instruction @11 :UInt64;
  stackPointer @12 :UInt64;
  stack @13 :Data;         # with registers: what was there from rsp on
}
struct Interrupt { pid @0 :Int32; tid @1 :Int32; wait @2 :UInt32; }

# A filter that the program has installed.
struct SeccompFilter {
  flags @0 :UInt32;  # SECCOMP_FILTER_FLAG_*
  code @1 :Data;     # array of struct sock_filter
}

# A call that must be made on every node: membarrier(MEMBARRIER_CMD_REGISTER_*), and
# arch_prctl(ARCH_REQ_XCOMP_PERM). From home also ptrace: monitor/node/debug_traps_wire.h
# For mbind(2) the arguments are the range's begin and size, then a policy in the format of
# monitor/tracee/memory_policy.h.
struct MirroredCall { pid @0 :Int32; number @1 :UInt32; args @2 :List(UInt64); }

struct UnfilledPage {
  pid @0 :Int32;
  tid @1 :Int32;     # 0: the kernel, or the monitor in its place
  address @2 :UInt64;
  write @3 :Bool;
}

struct FilterChange {
  pid @0 :Int32;
  filters @1 :List(SeccompFilter);  # the oldest first
}

# Home holds all pages of the process for a fork, and has sent everything before this. It sends it
# twice, as an urgent frame and as a bulk frame. The acceptor answers both in the same way, once no
# page is being put into or taken out of the program's memory.
struct ForkBarrier { pid @0 :Int32; }

# Copy the memory of a stopped process. Pages stay where they are: each node copies what it has, and
# what it knows of the process's memory objects.
struct ProcessFork {
  parent @0 :Int32;
  child @1 :Int32;                 # 0: the fork has failed, stop waiting
  noHandlers @2 :Bool;             # CLONE_CLEAR_SIGHAND
  affinity @3 :Data;               # as in ProcessStart
  clearTid @4 :UInt64;             # likewise
  memoryPolicy @5 :List(UInt64);   # likewise
}

struct ProcessEnd {
  pid @0 :Int32;
  memoryGone @1 :Bool;  # home has nothing of it any more: after an exec
  newImage @2 :Bool;    # the process continues, so keep its descriptors
  neverStarted @3 :Bool;  # there is no fragment: drop what is kept for it, without an answer
}

struct ThreadId { pid @0 :Int32; tid @1 :Int32; }

# For set_mempolicy(2), in the format of monitor/tracee/memory_policy.h.
struct MemoryPolicy { pid @0 :Int32; tid @1 :Int32; words @2 :List(UInt64); }

struct ProcessStart {
  pid @0 :Int32;
  name @1 :Text;
  vdsoBegin @3 :UInt64;  # begin of [vvar] and end of [vdso] at home; 0: none
  vdsoEnd @4 :UInt64;
  actions @5 :List(SignalAction);
  mixed @6 :Bool;        # program code may run on both nodes, so report futex wakes
  chaosSeed @7 :UInt64;  # not 0: threads also cross at random (tests)
  fdBase @8 :UInt32;     # the acceptor's lowest descriptor; 0: it has none
  bpf @9 :Bool;          # BPF may be used if the acceptor can
  filters @10 :List(SeccompFilter);  # those of its thread
  newImage @11 :Bool;    # after an exec, not a fork: close the close-on-exec descriptors
  limitsMemory @13 :Bool;  # it has RLIMIT_AS, so home's kernel decides on mappings
  gravity @12 :Bool;     # threads may go home for their calls, if their code can run there
  affinity @14 :Data;    # of its thread; empty: the program has not set it
  mayUseTiles @2 :Bool;  # the process has asked for permission to use AMX tiles
  clearTid @15 :UInt64;  # set_tid_address(2) of its thread, at the acceptor; 0: none
  barriers @16 :UInt32;  # commands of membarrier(2) by which it has registered
  fdLast @17 :UInt32;    # the acceptor's highest descriptor; 0: no limit
  memoryPolicy @18 :List(UInt64);  # what its thread has set at the acceptor; empty: nothing
  notesRseq @19 :Bool;   # it was attached: home answers rseq(2)
  timers @20 :List(IntervalTimer);  # that it had at home, on CPU time; they go on at the acceptor
}

# setitimer(2), in µs.
struct IntervalTimer { kind @0 :UInt8; left @1 :UInt64; interval @2 :UInt64; }

struct SignalAction { signal @0 :UInt32; action @1 :Data; }  # the kernel's struct sigaction
struct ActionChange { pid @0 :Int32; action @1 :SignalAction; }
struct ProcessStarted {
  pid @0 :Int32;
  error @1 :Text;    # empty: started
  guards @2 :Bool;   # the acceptor's kernel has guard pages
  lowestAddress @3 :UInt64;  # lowest that the acceptor's kernel maps (vm.mmap_min_addr)
}

struct ProcessGone {
  pid @0 :Int32;
  used @1 :Counts.Usage;        # by the fragment
  counts @2 :Counts.NodeCounts;
  pendingTimers @3 :UInt64;     # before a new image: timer signals that are pending there
  reason @4 :Text;              # why it ended by itself; empty: home asked for it
  usedPaths @5 :List(UInt32);   # indices of the rules in Hello.paths that have decided a call
  usedCalls @6 :List(UInt32);   # the same for Hello.calls
}

struct Crossing {
  pid @0 :Int32;
  tid @1 :Int32;
  registers @2 :Data;      # user_regs_struct
  signalMask @3 :UInt64;
  altStack @4 :Data;       # stack_t; empty: unchanged at the receiver
  visit @6 :Bool;          # only to access memory that only the receiver may use
  robustList @5 :UInt64;   # its address; 0: unchanged at the receiver
  missed @7 :List(UInt64); # pages it waited for at the sender: number * 2, + 1 for a write
  filters @8 :List(SeccompFilter);  # to the acceptor: those that its worker does not know yet
  byGravity @9 :Bool;      # to home: only because its calls and pages are there
  cpuModes @10 :UInt8;     # to the acceptor: PR_SET_TSC, ARCH_SET_CPUID; 0: unchanged
  affinity @11 :Data;      # to the acceptor: what the program has set; empty: unchanged
  clearTid @12 :UInt64;    # what its end clears, if the receiver does not know it; else 0
  stalls @13 :UInt32;      # how many pages it waited for at the sender, if gravity counts them
  # The registers repeat a call that the sender's kernel has interrupted: its restart code, by which
  # a signal that comes before it is repeated ends it, or not (512, 514 or 516); else 0.
  suspended @14 :UInt16;
  memoryPolicy @15 :List(UInt64);  # to the acceptor: what the program has set; empty: unchanged
}

struct CallRequest {
  pid @0 :Int32;
  tid @1 :Int32;
  number @2 :UInt32;
  args @3 :List(UInt64);
  noReply @4 :Bool;
  registers @5 :Data;      # only for calls that make a thread or process: what the new thread has
  extendedState @6 :Data;
  signalMask @7 :UInt64;   # with registers: the calling thread's current mask
  repeatable @8 :Bool;     # it may be repeated after the handler of a signal that interrupts it
  ownPages @9 :UInt64;     # with registers: number of the process's pages at the acceptor, if its
                           # memory can be copied there; else 0
  wait @10 :UInt32;        # identifies the call in an Interrupt; 0: no Interrupt will come
  # With registers, for clone3: set_tid, and the descriptor of CLONE_INTO_CGROUP. args are its
  # flags without the signal, stack, parent_tid or pidfd, child_tid, tls and exit_signal.
  setTid @11 :List(Int32);
  cgroup @12 :UInt32;
  file @13 :UInt64;        # for dup2 and dup3: the acceptor's file that gets a name; 0: home's. For
                           # epoll_ctl: not 0 if the file to be watched is the acceptor's
  waited @14 :UInt64;      # for answers since the last call that said so, in ns
  mayDelegate @15 :Bool;   # if it opens a file, the acceptor will answer for that
  mayRemember @16 :Bool;   # the acceptor will repeat the answer while that holds
  stopped @17 :UInt32;     # calls of the thread that stopped it there, since the last that said so
}

struct CallReply {
  pid @0 :Int32;
  tid @1 :Int32;
  result @2 :Int64;        # the kernel's own, including restart codes
  signal @3 :Data;         # siginfo of the signal that interrupted it; deliver it before returning
  serial @4 :UInt32;       # of that signal, see SignalDelivery; 0: no signal
  # not empty: not made, as it uses these names: decide again who makes it
  names @5 :List(Files.FdName);
  elsewhere @6 :Bool;      # not made: the thread must go home, as a third node makes the call
  delegation @7 :Files.Delegation;  # of the file that the call has opened
  lookup @8 :Files.Lookup;          # how long the answer holds
  movesBreak @9 :Bool;  # of brk: the acceptor may move the break from now on, see Space.BreakMove
  # With it: the object at the break if none of its pages behind that are known, so that memory
  # behind it may belong to it, too; else 0.
  breakObject @10 :UInt32;
}

struct SignalDelivery {
  pid @0 :Int32;
  tid @1 :Int32;    # 0: SIGSTOP stops the whole process where it is, SIGCONT continues it
  info @2 :Data;    # siginfo_t
  fatal @3 :Bool;   # acceptor: it has no handler, so let it kill the process
  handled @4 :Bool; # acceptor: its handler has begun; home: no other comes first, run the handler
  mask @5 :UInt64;  # acceptor, with handled: the thread's mask from now on, or mask_is_kept; fatal:
                    # hit_traps()
  serial @6 :UInt32;  # counts the signals that home passes on; the acceptor's answer repeats it.
                      # 0: caused at the acceptor; with SIGKILL as handled, only the mask is told.
                      # Highest bit: see monitor/node/signal_wire.h
}

struct FutexWake {
  pid @0 :Int32;
  address @1 :UInt64;
  count @2 :Int32;
  bitset @3 :UInt32;
  shared @4 :Bool;   # the waiters did not use FUTEX_PRIVATE_FLAG
}

# FUTEX_REQUEUE of private words: wake and move so many. Or its answer: how many it were together.
struct FutexMove {
  cookie @0 :UInt32; pid @1 :Int32; from @2 :UInt64; to @3 :UInt64; wake @4 :Int32; move @5 :Int32;
  done @6 :Bool; moved @7 :Int32;
}

# The pages in which the sender's threads wait for futexes: a set of hashes, see bpf/call_layout.h.
struct FutexWaiters {
  bits @0 :List(UInt64);
}

# The fields are explained in mm/page_protocol.h. `contents` has one byte for each page, the kind of
# its content; the content of the pages that have any follows in the raw part, in order.
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
  lost @5 :Bool;
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
  spans @2 :List(UInt64);  # pairs: first page and number of pages
}

struct PagePush {
  to @0 :UInt8;
  left @1 :UInt8;
  grant @2 :UInt8;
  tid @3 :Int32;
  contents @4 :Data;
}
# For measuring the link; has no other meaning.
struct Echo {
  id @0 :UInt64;
  wantedBytes @1 :UInt32;
}

# --- link ------------------------------------------------------------------------------------

struct Ping {
  id @0 :UInt64;
  clock @1 :Handshake.ClockSample;  # in the pongs of the handshake: when the sender answered
}

struct Bye {
  reason @0 :Text;  # why the sender ends the session, for the peer's user to read
}
