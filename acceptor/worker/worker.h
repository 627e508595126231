// A session on the acceptor: one worker, the fragments of the session's processes, one link home.
#pragma once

#include <sys/time.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "acceptor/box/sandbox.h"
#include "acceptor/worker/remote_process.h"
#include "monitor/node/futex_news.h"
#include "monitor/node/futex_wake.h"
#include "monitor/paging/layout_parts.h"
#include "monitor/paging/pager.h"
#include "monitor/rules/chaos.h"
#include "monitor/rules/path_rules.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/clone_request.h"
#include "transport/handshake.h"
#include "transport/link.h"

namespace gpr {

struct WorkerOptions {
    bool unlike_vdso = false;  // this kernel's is not used in place of the initiator's, ever
};

// The WorkerMain of a real session.
int run_worker(EstablishedInitiator established, Sandbox& sandbox,
               const WorkerOptions& options = {});

class Worker {
public:
    Worker(Loop& loop, Waits& waits, Link& link, Sandbox& sandbox, const Hello& peer, Fd stub_code,
           const WorkerOptions& options);

private:
    using Frame = std::shared_ptr<ReceivedFrame>;

    // --- events (worker.cc) ---
    void on_frame(ReceivedFrame&& frame);
    void on_notification(const Notification& n);
    void on_wait(pid_t host_tid, WaitStatus status);
    void on_link_closed(const Error& reason);
    // All threads here wait for us.
    [[nodiscard]] bool nothing_runs() const;
    void on_birth(pid_t parent);
    void on_end(pid_t host_tid, WaitStatus status);
    void note_end(RemoteProcess& process, pid_t host_tid, WaitStatus status);
    void watch(RemoteThread& thread);
    // soon: it is about to stop.
    Task<WaitStatus> next_stop(RemoteThread& thread, bool soon = false);
    RemoteProcess* find_process(pid_t pid);
    RemoteThread* find_thread(pid_t pid, pid_t tid);

    // --- processes and threads (processes.cc) ---
    Task<void> start_process(Frame frame);
    Task<Result<void>> build(RemoteProcess& process, wire::ProcessStart::Reader start,
                             std::vector<Frame> layout);
    Task<Result<void>> clear_inherited(RemoteProcess& process, const EmptyProcess& empty,
                                       wire::ProcessStart::Reader start);
    Task<Result<void>> show_foreign_vdso(RemoteProcess& process, StubThread& stub, Address end,
                                         uint64_t our_pages);
    pid_t next_helper_id(pid_t of_process);
    Result<RemoteThread*> adopt_leader(RemoteProcess& process);
    Task<void> arrive(Frame frame);
    Task<Result<RemoteThread*>> make_shadow(RemoteProcess& process, pid_t tid, uint64_t flags,
                                            uint64_t child_tid);
    void could_not_begin(const Error& why);
    Task<void> set_free(RemoteThread& thread, const ThreadContext& context);
    void go_on(RemoteThread& thread);
    // --- threads and processes begin (clone.cc) ---
    struct NewTask {
        ThreadContext context;       // its parent's
        std::vector<pid_t> set_tid;  // of clone3
        uint32_t cgroup = 0;         // of CLONE_INTO_CGROUP
    };
    Task<int> read_clone_args(RemoteProcess& process, Notification n, CloneRequest& request,
                              std::vector<pid_t>& set_tid);
    Task<Result<void>> begin_thread(RemoteThread& parent, pid_t tid, const CloneRequest& request,
                                    ThreadContext context);
    Task<void> clone_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    // --- processors of threads (affinity.cc) ---
    RemoteThread* thread_named(RemoteThread& caller, uint64_t name);
    static void choose_cpus(RemoteThread& thread, CpuMask mask);
    Task<void> affinity_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> hold_to_end(RemoteThread& thread, std::vector<Range> words);
    // --- forks whose memory stays where it is (forks.cc) ---
    [[nodiscard]] uint64_t own_pages(const RemoteProcess& process) const;
    Task<void> on_barrier(Frame frame);
    Task<void> fork_process(Frame frame);
    Task<Result<RemoteProcess*>> clone_memory(RemoteProcess& parent, pid_t pid, bool no_handlers);
    void on_newborn(RemoteProcess& parent, pid_t host_tid);
    Task<Result<void>> use_mailbox(RemoteThread& leader, user_regs_struct regs);
    Task<Result<void>> finish_copy(RemoteProcess& process, wire::ProcessFork::Reader fork,
                                   std::vector<Frame> layout);
    Task<Result<void>> open_uffd(RemoteProcess& process, StubThread& stub);
    // Stops the thread at the end of the call it is in, which then has `result` to come.
    Task<Result<ThreadContext>> stop_in_call(RemoteThread& thread, uint64_t notification);

    // --- forks (freeze.cc) ---
    Task<void> freeze(RemoteProcess& process, RemoteThread* but);
    Task<void> freeze_for_home(Frame frame);
    void thaw(RemoteProcess& process);

    // --- ends (exit.cc) ---
    Task<void> exit_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> end_process(Frame frame);
    Task<void> bring_robust_lists(RemoteProcess& process);
    void bury(RemoteProcess& process);

    // --- system calls (calls.cc) ---
    Task<void> handle_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<bool> may_change(RemoteProcess& process, Notification n);
    class WaitHere;
    Task<void> forward(RemoteProcess& process, RemoteThread& thread, Notification n,
                       WaitHere* here = nullptr);
    Task<void> end_forwarded(RemoteProcess& process, RemoteThread& thread, Notification n,
                             int64_t result);
    void give_answer(RemoteThread& thread, uint64_t id, int64_t result);
    // As forward, but gives the result to the caller instead of to the thread.
    // met_shared: becomes true, and nothing is asked, if the call is about shared memory.
    Task<int64_t> ask_home(RemoteProcess& process, RemoteThread& thread, const Notification& n,
                           bool reply, const NewTask* task = nullptr, bool* met_shared = nullptr,
                           uint32_t wait = 0, uint64_t file = 0);
    Task<uint64_t> mask_of_call(RemoteProcess& process, Notification n);
    Task<void> end_under_mask(RemoteProcess& process, RemoteThread& thread, Notification n,
                              uint64_t mask, HandledSignal signal);
    static Task<void> set_cpu_modes(RemoteThread& thread, CpuModes modes);
    Task<void> tid_address_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> mirror(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> permission_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> call_done(Frame frame);

    // --- program code on both nodes (code.cc) ---
    Task<void> code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write, pid_t tid);
    bool may_leave_at_fault(Fragment& fragment, Address at, bool write, pid_t tid);
    Task<void> depart(std::shared_ptr<Fragment> fragment, RemoteThread& thread, Address at,
                      bool write, bool by_gravity);
    static bool is_drawn_home(const RemoteProcess& process, const RemoteThread& thread,
                              const Notification& n);
    Task<void> leave_at_call(RemoteThread& thread, Notification n, bool by_gravity = false);
    Task<void> send_home(RemoteThread& thread, const ThreadContext& context, bool visit = false,
                         bool by_gravity = false);
    Task<void> mirror_alt_stack(RemoteProcess& process, RemoteThread& thread,
                                const ThreadContext& context);
    Task<void> set_action(Frame frame);
    Task<void> register_membarrier(Frame frame);
    Task<Usage> usage_of(RemoteProcess& process);
    Task<Usage> used_here(RemoteProcess& caller, pid_t tid, UsageCall call);
    Task<void> add_used_here(RemoteProcess& process, pid_t tid, Notification n);
    Task<void> answer_usage(Frame frame);
    Task<void> end_shadow(Frame frame);
    static Task<void> take_clear_tid(RemoteThread& leader, uint64_t at);
    Task<void> clear_tid_of_main(RemoteThread& thread);
    void wake_after_end_of_main(const RemoteThread& thread);
    void watch_futexes();
    [[nodiscard]] bool waits_for_home(const RemoteThread& thread) const;
    void use_at_home(ObjectId object);
    Task<void> futex_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> on_futex_wake(Frame frame);
    void send_futex_wake(RemoteProcess& process, const FutexWakeCall& wake);
    void bounce(pid_t pid, pid_t tid, const HandledSignal& signal);
    bool postpone_signal(RemoteThread& thread, int signal);

    // --- the program's seccomp filters (filters.cc) ---
    Task<void> filter_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> set_filters(Frame frame);
    Task<void> install_for_all(RemoteProcess& process, FilterList filters);
    Task<void> install_for_one(RemoteThread& thread, FilterList filters);
    bool dies_by_filter(RemoteThread& thread, const siginfo_t& info);

    // --- files of this host (files.cc) ---
    static bool has_fd_here(const RemoteProcess& process, uint64_t fd);
    Task<void> path_call(RemoteProcess& process, RemoteThread& thread, Notification n,
                         uint64_t path_at);
    // False: there is no such file here, so it is not for the profile that stands by.
    bool use_profile(const PathVerdict& verdict, const std::string& path, bool opens);
    Task<void> close_range_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> map_file(RemoteProcess& process, Notification n);
    static Task<Result<void>> copy_of_file(Fragment& fragment, Mapping& mapping);
    // Of what the program may write from now on.
    Task<void> copy_files(RemoteProcess& process, Range range);
    static Result<void> fill_from_file(Fragment& fragment, const Mapping& mapping);

    // --- numbers of home that are names of files here (names.cc) ---
    static void note_name(RemoteProcess& process, int number, uint64_t file);
    static void forget_names(RemoteProcess& process, uint64_t first, uint64_t last);
    void note_names(RemoteProcess& process, capnp::List<wire::FdName>::Reader names);
    Task<void> on_fd_names(Frame frame);
    void on_files_gone(wire::FilesGone::Reader gone);
    Task<void> bring_names(RemoteProcess& process);
    Task<void> change_names(RemoteProcess& process, RemoteThread& thread, Notification n,
                            std::function<void(int64_t)> note, uint64_t file = 0);
    Task<void> name_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> copy_name_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<bool> is_beside_its_fd(RemoteProcess& process, Notification n, int path_argument);
    Task<bool> named_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    void on_heir(wire::Heir::Reader heir);
    void on_kept_call(wire::KeptCall::Reader call);
    std::pair<int64_t, uint64_t> make_kept_call(wire::KeptCall::Reader call);

    // --- calls that split rules give to this node (call_rules.cc) ---
    bool made_by_rule(const RemoteProcess& process, const Notification& n);
    Task<void> send_message_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<int> sends_foreign_fds(RemoteProcess& process, Notification n);
    Task<void> pin_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<std::vector<Range>> ranges_to_pin(RemoteProcess& process, Notification n);

    // --- waits for descriptors of both nodes (polls.cc) ---
    class PollHere;
    class EpollHere;
    Task<void> wait_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<std::unique_ptr<WaitHere>> wait_here(RemoteProcess& process, Notification n,
                                              bool& all_ours);
    Task<int64_t> ask_both(RemoteProcess& process, RemoteThread& thread, Notification n,
                           WaitHere& here);
    void interrupt_at_home(const RemoteThread& thread, uint32_t wait);
    static void hide_own_fds(const RemoteProcess& process, MarshalledCall& call);
    Task<void> epoll_control(RemoteProcess& process, RemoteThread& thread, Notification n);
    static Task<void> forget_epolls(RemoteProcess& process, uint64_t first, uint64_t last);

    // --- select (selects.cc) ---
    class OwnMemory;
    Task<int64_t> call_home(RemoteProcess& process, RemoteThread& thread, uint32_t number,
                            SyscallArguments args, OwnMemory& memory, uint32_t wait);
    struct Select;
    Task<std::unique_ptr<Select>> read_select(RemoteProcess& process, Notification n);
    Task<int64_t> wait_for_others(RemoteProcess& process, RemoteThread& thread, Select& select,
                                  bool waits, bool& in_vain);
    Task<int64_t> make_select(RemoteProcess& process, RemoteThread& thread, Notification n,
                              Select& select);
    Task<void> select_call(RemoteProcess& process, RemoteThread& thread, Notification n);

    // --- what children and images inherit of descriptors and timers (inheritance.cc) ---
    struct IntervalTimer {
        uint64_t kind = 0;  // ITIMER_VIRTUAL, ITIMER_PROF
        itimerval setting{};
    };
    struct KeptFd {
        int number = -1;
        Fd copy;
        bool closes_on_exec = false;
    };
    struct Kept {
        std::vector<KeptFd> descriptors;
        std::vector<IntervalTimer> timers;  // of an image
    };
    static std::vector<KeptFd> descriptors_of(const RemoteProcess& process);
    void keep_descriptors(pid_t pid, std::vector<KeptFd> kept);
    Task<Result<void>> give_descriptors(RemoteProcess& process, const Kept& all, bool new_image);
    Task<void> keep_of_image(RemoteProcess& process);
    Task<Result<void>> give_kept(RemoteProcess& process, bool new_image);

    // --- timers of CPU time (timers.cc) ---
    Task<void> timer_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<int64_t> create_timer(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<int64_t> use_timer(RemoteProcess& process, Notification n);
    static void name_timer(RemoteProcess& process, RemoteThread& thread);
    // Nothing: it does not answer any more.
    Task<std::vector<IntervalTimer>> interval_timers(RemoteProcess& process);
    static Task<void> set_interval_timers(Fragment& fragment, std::vector<IntervalTimer> timers);

    // --- memory (memory.cc) ---
    void note_limit(RemoteProcess& caller, const Notification& n);
    Task<void> map_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    static Task<int64_t> try_size(RemoteProcess& process, Notification n);
    Task<void> unmap_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<int64_t> unmap(RemoteProcess& process, Range range);
    Task<void> protect_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> advise_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> discard_call(RemoteProcess& process, Notification n, Range range);
    void unlock_call(RemoteProcess& process, const Notification& n);
    Task<void> residence_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> add_resident(RemoteProcess& process, Notification n);
    // True: the signal was a touch right below a mapping that grows, and is dealt with.
    bool mends_fault(RemoteProcess& process, RemoteThread& thread, const siginfo_t& info);
    Task<void> grow_down(RemoteProcess& process, RemoteThread& thread, siginfo_t info);
    Task<void> bus_error(pid_t pid, pid_t tid, siginfo_t info);
    Task<void> apply_mapping(Frame frame);
    // --- mremap (remap.cc) ---
    struct Remap {
        Range from, to;
        ObjectId kept = 0;  // MREMAP_DONTUNMAP: what is seen at the old place then
        NodeId kept_born = 0;
        uint64_t kernel_flags = 0;
    };
    Task<void> move_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<int64_t> move_one(RemoteProcess& process, Notification n);
    // Where the mapping goes, or why it cannot.
    tl::expected<Remap, int> plan_move(AddressSpace& space, const Notification& n, bool in_place);
    Task<int64_t> move_mapping(Fragment& fragment, const Remap& move);
    Task<void> apply_move(Fragment& fragment, wire::Move::Reader move);
    static constexpr int no_room = 4096;  // no errno: our arena has none, but home may
    // Where the mapping that mmap asks for goes, or why it cannot.
    tl::expected<Address, int> place_for(AddressSpace& space, const Notification& n) const;
    // --- shared memory (shared.cc) ---
    void know_shared(wire::MappingView::Reader view);
    Task<int64_t> show_shared(Fragment& fragment, const Mapping& mapping);
    void give_shared(RemoteProcess& process, const Notification& n);
    void resize_shared(wire::Resize::Reader resize);

    // --- signals (signals.cc) ---
    // What home has to know of a signal: its handler begins, it ends the process, or it is home's.
    enum class SignalNews { handled, fatal, goes_back };
    void tell_of_signal(pid_t pid, pid_t tid, const HandledSignal& signal, SignalNews news,
                        uint64_t mask = 0);
    static void deliver_borrowed(RemoteThread& thread);
    void return_borrowed(RemoteThread& thread);
    void on_signal_stop(RemoteProcess& process, RemoteThread& thread, int signal);
    void begin_handler(RemoteProcess& process, RemoteThread& thread, int signal,
                       const std::optional<HandledSignal>& sent);
    bool handler_begun(RemoteProcess& process, RemoteThread& thread);
    bool has_signal_to_handle(RemoteThread& thread);
    void look_for_discarded(pid_t pid);
    void halt(RemoteProcess& process);
    void let_go_on(RemoteProcess& process);
    static void deliver(RemoteThread& thread, const HandledSignal& signal);
    void hand_over(RemoteThread& thread, const HandledSignal& signal);
    void hand_over_answered(RemoteThread& thread);
    Task<void> mask_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<bool> change_mask(RemoteProcess& process, RemoteThread& thread, Notification n,
                           Notification change);
    Task<void> signal_from_home(Frame frame);
    Task<void> handler_return(RemoteProcess& process, RemoteThread& thread, Notification n);

    Loop& loop_;
    Waits& waits_;
    Link& link_;
    Sandbox& sandbox_;
    NodeId self_;
    Fd stub_code_;
    std::vector<std::byte> peer_vdso_;
    bool unlike_vdso_;  // its functions lie elsewhere than in ours
    Fd uffd_device_;    // a process in the box can have a userfaultfd from it
    Pager pager_;
    FutexNews futex_news_;
    bool watch_tried_ = false;
    bool has_guards_ = false;  // this kernel has guard pages, and tells where
    std::unique_ptr<Chaos> chaos_;
    PathRules paths_;
    std::set<uint32_t> used_paths_;  // that decided anything, by their number
    std::vector<RemoteCall> remote_calls_;
    std::set<uint32_t> used_calls_;  // of those
    uint64_t calls_by_rule_ = 0;     // that were any of those
    AsyncMutex metadata_;
    Signal stopped_;  // a thread of a frozen process stands still
    std::unordered_map<pid_t, std::unique_ptr<RemoteProcess>> processes_;  // by pid
    std::unordered_map<pid_t, RemoteThread*> by_host_tid_;
    std::unordered_map<pid_t, RemoteProcess*> owners_;  // by host tid, helpers too
    ObjectId next_object_;
    pid_t next_helper_ = 0;
    LayoutParts layouts_;
    std::map<pid_t, Kept> kept_;          // for processes that are not made yet
    std::map<uint64_t, Fd> named_files_;  // those that home has names of
    uint64_t last_file_ = 0;
    uint32_t last_wait_ = 0;
    uint64_t calls_home_ = 0;
    uint64_t calls_native_ = 0;
    uint64_t calls_fd_owner_ = 0;  // that we saw
};

}  // namespace gpr
