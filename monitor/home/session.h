// The session as node 0 runs it: the process tree, its threads' shadows, and the directory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "mm/page_directory.h"
#include "monitor/home/directory_record.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/process.h"
#include "monitor/home/session_outputs.h"
#include "monitor/home/shared_file.h"
#include "monitor/node/futex_news.h"
#include "monitor/node/futex_wake.h"
#include "monitor/node/own_namespaces.h"
#include "monitor/node/private_files.h"
#include "monitor/node/session_stats.h"
#include "monitor/node/usage_wire.h"
#include "monitor/paging/pager.h"
#include "monitor/paging/program_faultfd.h"
#include "monitor/rules/chaos.h"
#include "monitor/rules/function_symbols.h"
#include "monitor/rules/path_rules.h"
#include "monitor/rules/rule_use.h"
#include "monitor/rules/split_policy.h"
#include "monitor/tracee/orphaned_helpers.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/signal_action.h"
#include "syscall/marshal.h"
#include "transport/link.h"

namespace gpr {

struct ForwardedCall;
struct ProcFile;
struct SentSignal;
struct TimerCall;

class HomeSession {
public:
    // fd_base: the first number of the acceptor's descriptors; 0: it has none.
    HomeSession(Loop& loop, Waits& waits, Link& link, const ExecOptions& options,
                SessionOutputs& outputs, unsigned fd_base, Fd stub_code);
    void record(DirectoryRecord& to) { to.record(directory_); }
    // root is seized, has the filter and is about to exec.
    void start(pid_t root, Fd listener);
    // Before start(): the acceptor lacks these CPU features, and the C library does not use them.
    void note_masked(std::vector<std::string> features) { masked_ = std::move(features); }
    // Before start(): of the profiles that stand by the acceptor has something for these.
    void keep_standby(const std::vector<std::string>& profiles) { paths_.keep_standby(profiles); }
    // Before start(): private wakes are not stopped, the watch tells them.
    void watch_futexes(std::unique_ptr<CallWatch> watch);
    // The reason the session failed; empty if it did not.
    [[nodiscard]] const std::string& failure() const { return failure_; }
    [[nodiscard]] bool waits_for_pages() const { return pager_.faulting() > 0; }

private:
    friend class FdNames;
    friend struct GuardPages;
    friend struct MainStack;
    friend struct MemoryGate;
    using Frame = std::shared_ptr<ReceivedFrame>;

    // --- events (session.cc) ---
    void on_wait(pid_t tid, WaitStatus status);
    void on_event(HomeThread& thread, int event);
    void on_birth(HomeThread& parent, int event);
    void on_end(HomeThread& thread);
    void forget_other_threads(HomeProcess& process);
    void bury(std::unique_ptr<HomeThread> thread, HomeProcess& process);
    void on_notification(const Notification& n);
    void on_frame(ReceivedFrame&& frame);
    void on_link_closed(const Error& reason);
    void tell_user(const std::string& what) const;
    void watch(HomeThread& thread);
    HomeThread& add_thread(HomeProcess& process, pid_t tid);
    // soon: it is about to stop.
    Task<WaitStatus> next_stop(HomeThread& thread, bool soon = false);
    HomeThread* find_thread(pid_t pid, pid_t tid);
    HomeProcess* find_process(pid_t pid);

    // --- making a process split (prepare.cc) ---
    Task<void> begin_image(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> prepare(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> prepare_stub(HomeProcess& process, HomeThread& thread);
    static Task<void> take_mask(HomeThread& thread, uint64_t mask);
    Task<Result<int64_t>> inject(HomeThread& thread, uint64_t number, uint64_t a = 0,
                                 uint64_t b = 0, uint64_t c = 0, uint64_t d = 0, uint64_t e = 0,
                                 uint64_t f = 0);
    Task<Result<void>> enter_stub(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> open_uffd(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> read_layout(HomeProcess& process, HomeThread& thread);
    Task<Result<void>> make_anonymous(HomeProcess& process, Mapping& mapping,
                                      std::vector<Range> own = {});
    Task<Result<void>> make_writable(HomeProcess& process, Mapping& mapping);
    Task<Result<void>> start_remotely(HomeProcess& process);
    // visit: for memory that only the acceptor may use.
    Task<void> cross(HomeProcess& process, HomeThread& thread, const ThreadContext& context,
                     bool visit = false);
    [[nodiscard]] bool must_split_for(const HomeProcess& process, const Notification& n) const;
    void split_children_now();
    Task<bool> begin_fork(std::shared_ptr<Fragment> fragment, pid_t tid);
    Task<void> freeze(HomeProcess& process, pid_t tid);
    bool end_fork(HomeThread& thread);  // whether it was in one
    void end_failed_fork(pid_t tid);
    Task<void> start_newborn(HomeThread& thread, std::optional<ThreadContext> context, bool split);
    Task<void> split_child(pid_t pid);
    Task<void> split_stopped(HomeProcess& process, HomeThread& thread,
                             const ThreadContext& context);

    // --- namespaces of its own, processors (namespaces.cc, affinity.cc) ---
    [[nodiscard]] bool stays_home(pid_t pid) const;
    [[nodiscard]] bool child_stays_home(pid_t tid, uint64_t clone_flags) const;
    Task<void> begin_at_home(HomeThread& thread, std::optional<ThreadContext> context);
    void share_with(const HomeProcess& outsider);
    void affinity_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    void note_affinity(HomeThread& caller, const MarshalledCall& call);
    HomeThread* thread_named(HomeThread& caller, uint64_t tid);

    // --- forks whose memory stays where it is (forks.cc) ---
    [[nodiscard]] bool copies_in_place(const HomeThread& thread,
                                       wire::CallRequest::Reader call) const;
    Task<AsyncMutex::Guard> hold_still(std::shared_ptr<Fragment> fragment);
    Task<void> on_barrier(Frame frame);
    Task<ForkResult> fork_here(HomeThread& thread, uint64_t flags, Birth birth);
    void fork_there(pid_t parent, pid_t child, uint64_t flags, ForkedMemory& memory);
    void fork_nothing(pid_t parent);
    Task<void> fork_in_place(HomeProcess& process, HomeThread& thread, Frame frame, Birth birth);
    Task<void> start_copy(HomeThread& thread, ThreadContext context,
                          std::shared_ptr<ForkedMemory> memory);
    Task<Result<void>> prepare_copy(HomeProcess& process, HomeThread& thread,
                                    const ThreadContext& context, ForkedMemory& memory);
    Task<void> note_fork_advice(HomeProcess& process, SyscallArguments args);

    // --- forwarded calls (calls.cc) ---
    Task<void> serve_call(Frame frame);
    Task<void> run_call(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> prepare_call(HomeProcess& process, ForwardedCall& call);
    void place_call(HomeProcess& process, ForwardedCall& call);
    Task<void> make_forwarded(HomeProcess& process, HomeThread& thread, ForwardedCall& call);
    Task<void> note_made(HomeProcess& process, HomeThread& thread, ForwardedCall& call);
    Task<void> interrupt_call(Frame frame);
    void reply(HomeThread& thread, int64_t result, std::span<const std::byte> out = {});
    // seccomp (filters.cc)
    Task<int64_t> install(HomeThread& thread, uint64_t number, std::array<uint64_t, 6> args,
                          FilterCall call);
    Task<void> await_ends(pid_t pid);
    Task<void> install_for(HomeProcess& process, HomeThread& thread, uint64_t number,
                           std::array<uint64_t, 6> args);
    static int64_t seccomp_mode(const HomeThread& thread);
    void tell_common_filters(const HomeThread& thread);
    static void note_common_filters(const HomeThread& thread);
    static void inherit_filters(const HomeThread& parent, HomeThread& child);
    void take_state_of_caller(HomeProcess& process, HomeThread& thread);
    static bool is_ended_by_filter(const HomeThread& thread, int signal);
    Task<void> die_by_filter(HomeThread& thread, FilterDeath death);
    Task<void> filter_call(HomeProcess& process, HomeThread& thread, Notification n);
    // /proc/PID/mem (memory_files.cc)
    Task<void> note_opened(HomeProcess& process, StubThread& stub, int fd);
    Task<void> bring_for_memory_file(HomeProcess& process, uint32_t number, SyscallArguments args);
    // What /proc shows of a process (maps.cc, shown.cc)
    Task<void> open_call(HomeProcess& process, HomeThread& thread, Notification n);
    static bool has_opened(const HomeThread& thread);
    Task<void> show_opened(HomeThread& thread);
    void note_copied(HomeProcess& process, const Mapping& mapping);
    Task<std::string> shown_numbers(HomeProcess& process, ProcFile file, std::string path);
    Task<std::string> shown_arguments(HomeProcess& process, const std::string& path);
    Task<void> show_process(HomeProcess& process, StubThread& stub, int fd, ProcFile file);

    // --- processes and threads (spawn.cc) ---
    Task<void> spawn_thread(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> spawn_process(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> finish(HomeProcess& process, HomeThread& thread);
    Task<void> end_remotely(HomeProcess& process, bool memory_gone, bool new_image = false);
    void forget_remotely(pid_t pid);
    void end_helpers(HomeProcess& process);
    [[nodiscard]] bool is_helper(pid_t pid) const;
    void write_stats(int exit_status);
    void tell_idle_rules() const;
    // --- when things break (failure.cc) ---
    // gpr cannot go on: every process of the session ends with status 125, the user is told why.
    void abandon(const std::string& why);
    void could_not_split(pid_t pid, const Error& reason);
    // The same for one process.
    void give_up(HomeProcess& process, const std::string& why);
    void doom(HomeProcess& process);
    void press(HomeThread& thread);
    void on_doomed_stop(HomeThread& thread, WaitStatus status);
    void exit_here(HomeThread& thread);
    void on_remote_end(pid_t pid, const std::string& reason);
    void on_helper_end(HomeProcess& process, pid_t tid);

    // --- program code on both nodes (code.cc, local_calls.cc, exit.cc) ---
    static std::string executable_of(pid_t pid);
    CodeClass class_of(const std::string& path, const HomeProcess& process);
    Task<Result<void>> place_code(HomeProcess& process, Mapping& mapping, std::string path,
                                  uint64_t file_offset);
    Task<Result<void>> trap_code(HomeProcess& process, Mapping& mapping, std::string path,
                                 uint64_t file_offset);
    static Task<Result<void>> take_code_away(Fragment& fragment, Mapping& mapping);
    Result<bool> keep_text(const HomeProcess& process, Mapping& mapping, const std::string& path,
                           uint64_t file_offset);
    Task<std::optional<ThreadContext>> stop(HomeThread& thread);
    bool divert(HomeThread& thread, const ThreadContext& context);
    Task<std::optional<ThreadContext>> capture(HomeThread& thread);
    Task<std::optional<TakenCall>> take_call(HomeThread& thread);
    static Task<int64_t> make_call(const TakenCall& taken, const Notification& n);
    static Task<void> return_from(HomeThread& thread, TakenCall taken, int64_t result);
    void refuse_loan(const Fragment& fragment, Address at);
    bool may_leave_at_fault(Fragment& fragment, Address at, bool write, pid_t tid);
    enum class Why { code, pinned, gravity };
    Task<void> leave(std::shared_ptr<Fragment> fragment, HomeThread& thread, Address at, bool write,
                     Why why);
    // Pages that a device of the acceptor has pinned (pinned.cc).
    Task<void> pinned_fault(std::shared_ptr<Fragment> fragment, Address at, pid_t tid);
    void wait_for_pin(Fragment& fragment, Address at, HomeThread* thread, pid_t tid);
    Task<void> depart(HomeThread& thread, const ThreadContext& context, bool visit);
    Task<void> code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write, pid_t tid);
    // Functions that run at the acceptor (functions.cc, resolvers.cc).
    struct Breakpoint {
        ChosenFunction function;
        std::string library;
        Range pages;  // that the function has a part in
        bool from_its_start = false;
        std::optional<siginfo_t> swallowed;  // a signal of the program's, by that of the breakpoint
    };
    Result<void> place_functions(HomeProcess& process, Mapping& mapping, const std::string& path,
                                 uint64_t file_offset);
    const FoundFunctions& functions_in(int fd, const std::string& path);
    static void inherit_functions(const HomeProcess& parent, HomeProcess& child);
    static std::optional<Breakpoint> breakpoint_at(HomeProcess& process, Address at);
    bool meets_breakpoint(HomeThread& thread);
    Task<void> leave_for(HomeThread& thread, ThreadContext context, Breakpoint met);
    Task<void> run_function_here(HomeThread& thread, ThreadContext context, Breakpoint met);
    void set_breakpoints_again(Fragment& fragment, Range pages);
    Task<void> run_resolver(HomeThread& thread, ThreadContext context, Breakpoint met);
    Task<bool> step_to_return(HomeThread& thread, ThreadContext& context);
    void choose_resolved(HomeProcess& process, const Breakpoint& resolver, Address resolved);
    // What a breakpoint does to SIGTRAP (trap_state.cc).
    static void begin_trap_state(HomeProcess& process);
    static void note_trap_action(HomeProcess& process, const SignalAction& action);
    static void note_handler(HomeThread& thread, int signal);
    Task<void> mask_call(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> handler_return(HomeProcess& process, HomeThread& thread, Notification n);
    static void repair_mask(HomeThread& thread, ThreadContext& context);
    static Task<void> queue_again(HomeThread& thread, siginfo_t info);
    Task<void> repair_trap_action(HomeThread& thread);
    // visit: because the call can be made there only, whatever code makes it.
    Task<void> leave_at_call(HomeProcess& process, HomeThread& thread, bool visit);
    // Files of the acceptor (files.cc).
    [[nodiscard]] bool is_about_acceptors_fd(const Notification& n) const;
    [[nodiscard]] bool is_acceptors(const HomeProcess& process, std::string_view path) const;
    [[nodiscard]] bool is_acceptors_call(const Notification& n) const;
    Task<void> poll_call(HomeProcess& process, HomeThread& thread, Notification n);
    void use_profile(wire::ProfileUse::Reader use);
    Task<void> path_call(HomeProcess& process, HomeThread& thread, Notification n,
                         uint64_t path_at);
    [[nodiscard]] bool names_acceptors_file(const HomeProcess& process,
                                            const Notification& n) const;
    Task<void> arrive(Frame frame);
    Task<void> begin(HomeProcess& process, HomeThread& thread, const ThreadContext& context);
    bool postpone_signal(HomeThread& thread, int signal);
    static void stop_after_all(const HomeThread& thread);
    void local_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    void note_modes(HomeThread& thread, uint64_t number, const uint64_t* args, bool told);
    Task<void> memory_call(HomeProcess& process, HomeThread& thread, Notification n);
    Task<int64_t> change_memory(HomeProcess& process, StubThread& stub, Notification n,
                                Notification made, pid_t caller);
    Task<int64_t> make_change(HomeProcess& process, StubThread& stub, Notification n,
                              Notification made, pid_t caller);
    // Children that share memory (guests.cc).
    [[nodiscard]] HomeProcess* owner_of_memory(const HomeProcess& guest) const;
    static bool changes_memory(const Notification& n);
    void begin_sharing(HomeProcess& process);
    Task<std::shared_ptr<HeldUp>> hold_up(HomeProcess& process, bool is_vfork);
    Task<void> memory_call_of_guest(HomeThread& thread, Notification n);
    Task<std::optional<int64_t>> call_of_guest(HomeProcess& owner, pid_t guest, Notification n);
    static bool is_interrupted_in(const CallInItsStead& call, pid_t tid);
    Task<void> after_call_in_its_stead(pid_t pid, pid_t tid, WaitStatus status);
    Task<void> use_call(HomeThread& thread, Notification n, SharedUse use);
    int64_t lock_memory(HomeProcess& process, pid_t tid, uint32_t number,
                        std::span<const uint64_t, 6> args);
    Task<int64_t> map_locked(HomeProcess& process, StubThread& stub, Notification n, pid_t caller);
    Task<int64_t> move_parts(HomeProcess& process, StubThread& stub, Notification n, pid_t caller);
    Task<void> change_memory_for(HomeProcess& process, HomeThread& thread, Frame frame);
    static std::vector<Range> hidden_by(HomeProcess& process, const Notification& n);
    Task<void> save_hidden(HomeProcess& process, Notification n);
    Task<void> note_call(HomeProcess& process, Notification n, int64_t result, pid_t caller);
    Task<void> note_mmap(HomeProcess& process, Notification n, uint64_t begin, pid_t caller);
    void note_unmapped(HomeProcess& process, Range range);
    Task<void> note_protect(HomeProcess& process, Notification n);
    void note_move(HomeProcess& process, const Notification& n, uint64_t to);
    void note_break(HomeProcess& process, uint64_t end);
    Task<int64_t> discard_here(HomeProcess& process, StubThread& stub, Notification n);
    // Memory that began as private file content (discard.cc).
    static void inherit_copies(const HomeProcess& parent, HomeProcess& child);
    static void note_native_call(HomeProcess& process, const Notification& n);
    std::vector<Mapping> parts_with_files(HomeProcess& process, const Mapping& whole);
    void announce_discard(HomeProcess& process, Range range, const std::vector<Mapping>& pieces);
    Task<int64_t> discard_content(HomeProcess& process, StubThread& stub, Range range);
    Task<void> discard_for(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> action_call(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> fork_call(HomeProcess& process, HomeThread& thread, Notification n);
    void tell_membarrier(HomeProcess& process, const Notification& n);
    void futex_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    Task<void> futex_call_in_memory(HomeProcess& process, HomeThread& thread, Notification n);
    void tell_futex_wake(HomeProcess& process, const Notification& n);
    void tell_wake(HomeProcess& process, const FutexWakeCall& wake);
    void end_of_guest(HomeThread& thread);
    Task<void> clear_tid_of_guest(pid_t owner, Address at, pid_t tid);
    void send_futex_wake(HomeProcess& process, const FutexWakeCall& wake);
    Task<void> on_futex_wake(Frame frame);
    void note_clear_tid(HomeThread& parent, HomeThread& child);
    Task<void> before_exit(HomeThread& thread, bool filtered);
    Task<void> hold_last_words(HomeThread& thread, bool alone);
    void tell_exit(HomeThread& thread);

    // --- memory (growth.cc, memory.cc) ---
    bool grows_for(HomeThread& thread);
    Task<void> grow_down(HomeProcess& process, HomeThread& thread, siginfo_t info);
    bool meets_end_of_file(HomeThread& thread);
    Task<void> bus_error(std::shared_ptr<Fragment> fragment, pid_t tid, siginfo_t info);
    Task<void> map_for(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> brk_for(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> apply_mapping(Frame frame);
    std::vector<Mapping> move_views(HomeProcess& process, Range from, Range to, ObjectId kept,
                                    NodeId mover);
    void announce(HomeProcess& process, const Mapping& mapping);
    ObjectId new_object(NodeId birth);

    // --- userfaultfd of the program's own (faultfd.cc) ---
    Task<int64_t> make_faultfd(HomeProcess& process, StubThread& stub, uint64_t flags);
    std::shared_ptr<ProgramFaultfd> faultfd_of(pid_t pid, int fd);
    Task<void> make_faultfd_here(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> ioctl_here(HomeProcess& process, HomeThread& thread, Notification n,
                          std::shared_ptr<ProgramFaultfd> held);
    Task<int64_t> ioctl_faultfd(HomeProcess& process, std::shared_ptr<ProgramFaultfd> held,
                                uint32_t command, Address argument);
    int64_t agree(ProgramFaultfd& faultfd, uffdio_api& api);
    Task<int64_t> let_fill(ProgramFaultfd& faultfd, Range range, uint64_t mode);
    Task<int64_t> stop_filling(ProgramFaultfd& faultfd, Range range);
    Task<int64_t> copy_pages(HomeProcess& process, ProgramFaultfd& faultfd, uffdio_copy& copy);
    Task<int64_t> zero_pages(ProgramFaultfd& faultfd, uffdio_zeropage& zero);
    void wake_filled(const ProgramFaultfd& faultfd, Range range);
    void on_unfilled(pid_t pid, Address at, bool write, pid_t tid);
    void tell_faults(const std::shared_ptr<ProgramFaultfd>& faultfd);
    Task<void> on_faultfd_closed(uint64_t inode);

    // --- shared memory (shared.cc) ---
    void join_shared(HomeProcess&, Mapping& mapping, const MapsEntry&, const std::string& link);
    void map_shared(HomeProcess&, Address, uint64_t size, int prot, const std::string& link = "");
    Task<void> attach_for(HomeProcess& process, HomeThread& thread, Frame frame);
    void note_remapped(HomeProcess& process, Range range);
    void note_remote_usage(pid_t pid, const Usage& used);
    void credit_parent(const HomeProcess& process);
    void add_remote_usage(HomeProcess& process, const ForwardedCall& call);
    Task<void> usage_call_here(HomeThread& thread, Notification n);
    Task<ToldUsage> ask_usage(pid_t pid, pid_t tid, UsageCall call, bool state = false);
    void on_usage_answer(wire::UsageAnswer::Reader answer);
    // --- timers of CPU time (cpu_timers.cc) ---
    Task<uint64_t> cpu_clock(pid_t pid, CpuClock clock);
    Task<int64_t> use_cpu_timer(pid_t pid, const TimerCall& call, std::array<int64_t, 4>& words);
    Task<std::optional<int64_t>> timer_call_in_bounce(HomeProcess& process,
                                                      const ForwardedCall& call);
    Task<void> timer_call_here(HomeThread& thread, Notification n);
    struct NewTimer {
        int id = 0;
        std::optional<sigevent> event;
    };
    void note_timer_call(const HomeThread& thread, uint64_t number, const uint64_t* args,
                         int64_t result, const NewTimer& made);
    void note_timer_in_bounce(const HomeThread& thread, const ForwardedCall& call);
    static Task<void> send_for_timer(std::shared_ptr<Fragment> fragment, pid_t pid, pid_t tid,
                                     siginfo_t info);
    void watch_cpu_limit(HomeProcess& process);
    Task<void> run_cpu_timers(pid_t pid);
    Task<void> fire_cpu_timer(pid_t pid, int id, uint64_t now);
    Task<void> send_pending_timers(HomeProcess& process);
    static void name_cpu_timer(const HomeThread& thread, int signal);
    std::vector<FileSize> sizes_before(const HomeProcess& process, uint64_t number,
                                       const SyscallArguments& args);
    Task<void> after_truncation(std::vector<FileSize> before);
    Task<void> drop_beyond(std::shared_ptr<Fd> file, uint64_t size);
    Task<void> truncate_here(HomeThread& thread, Notification n);
    void note_loan(ObjectId object);
    Task<void> end_loan(ObjectId object);
    Task<void> end_loans();
    void note_attached(HomeProcess& process, Address at);
    Task<void> aio_call_here(HomeThread& thread, Notification n);
    Task<void> note_aio_in_bounce(HomeProcess& process, const ForwardedCall& call);
    Task<void> note_aio_call(HomeProcess& process, uint32_t number, Address context);
    SharedUse shared_use(HomeProcess& process, uint32_t number, const SyscallArguments& args);
    [[nodiscard]] SharedUse use_of_everything() const;
    Task<void> before_use(const SharedUse& use);
    Task<void> after_use(const SharedUse& use);
    Task<void> save_shared(const AddressSpace& space, Range range);
    Task<void> save_shared(HomeProcess& process);
    void resize(SharedFile& file, uint64_t pages);
    void note_size(SharedFile& file);
    void forget_unseen(const std::vector<Mapping>& gone);
    void forget_memory(HomeProcess& process);
    void note_protection(const Mapping& mapping);
    void note_writer(SharedFile& file);
    [[nodiscard]] bool anyone_writes_shared() const;
    // Others use it, too (meet_outsiders.cc, visits.cc).
    void begin_watching(SharedFile& file, const std::string& mapped_as);
    Task<void> look_for_outsiders();
    void choose_node(SharedFile& file);
    void note_request(ObjectId object);
    void note_given(HomeProcess& process, const ForwardedCall& call);
    Task<void> meet_outsiders(bool tells);
    Task<void> visit(HomeThread& thread, ThreadContext context);
    Task<bool> stand_still(HomeThread& thread);
    bool is_call_for_others(Fragment& fragment, const user_regs_struct& regs) const;
    bool is_beyond_end(Fragment& fragment, const siginfo_t& info);

    // --- signals (signals.cc) ---
    void on_signal(HomeThread& thread, int signal);
    void go_on_waiting(HomeThread& thread, int signal = 0);
    static std::optional<SignalAction> action_of(const MarshalledCall& call);
    static void before_action(HomeProcess& process, const SignalAction& action);
    static void after_action(HomeProcess& process, const SignalAction& action);
    void announce_action(HomeProcess& process, const SignalAction& action);
    AsyncMutex& actions_of(HomeProcess& process);
    void note_handled(HomeThread& thread, int signal);
    Task<void> reset_action(HomeThread& thread, SignalAction left);
    void on_remote_signal(Frame frame);
    void stop_remotely(HomeProcess& process, bool stopped);
    Task<void> die_of(HomeThread& thread, int signal);

    // --- signals of threads at the acceptor wait here (passed_signals.cc) ---
    static void leave_in_kernel(HomeThread& thread, int signal);
    static void keep_order(HomeThread& thread, int signal);
    void pass_on(HomeThread& thread, const siginfo_t& info);
    void handler_begun(HomeThread& thread, uint32_t serial, uint64_t mask);
    void came_back(HomeThread& thread, uint32_t serial);
    Task<void> take_back(HomeThread& thread, bool to_shadow);
    Task<void> give_to_others(HomeThread& thread);
    Task<void> take_own_mask(HomeThread& thread, uint64_t mask);
    Task<void> let_others_come(HomeThread& thread, PassedSignal begun, uint64_t mask);
    static void wake_others(const HomeThread& thread, uint64_t mask);
    Task<void> pass_on_sent(SentSignal signal);

    Loop& loop_;
    Waits& waits_;
    Link& link_;
    const ExecOptions& options_;
    SessionOutputs& outputs_;
    SplitPolicy policy_;
    const bool has_gravity_;
    PathRules paths_;
    std::vector<RemoteCall> remote_calls_;
    mutable RuleUse rule_use_;  // looking up is using
    unsigned fd_base_;
    std::vector<std::string> masked_;  // CPU features that only the C library leaves alone
    std::unique_ptr<Chaos> chaos_;
    Fd stub_code_;
    PageDirectory directory_;
    Pager pager_;
    FutexNews futex_news_;
    FdNames names_{*this};
    std::unique_ptr<Notifier> notifier_;
    std::unordered_map<pid_t, std::unique_ptr<HomeProcess>> processes_;
    std::unordered_map<pid_t, std::unique_ptr<HomeThread>> threads_;
    AsyncMutex metadata_;  // held while a change of an address space is being applied
    Signal remote_changed_;
    std::map<FileIdentity, FoundFunctions> found_functions_;
    uint64_t forks_begun_ = 0;
    std::map<pid_t, std::unique_ptr<PendingStart>> starting_;
    std::map<pid_t, std::unique_ptr<PendingStart>> forking_;
    std::map<pid_t, int> barriers_;  // that came back, while a fork waits for them
    std::map<pid_t, std::unique_ptr<OneShot<bool>>> ending_;
    std::map<ObjectId, SharedFile> shared_files_;
    std::unique_ptr<Outsiders> outsiders_;           // none in a mixed session, which needs none
    std::set<std::pair<uint64_t, uint64_t>> given_;  // device, inode of what was sent to outsiders
    PrivateFiles private_files_;
    std::map<pid_t, Birth> births_;  // by parent tid, while its clone runs
    uint32_t next_usage_question_ = 1;
    uint64_t cpu_timers_turns_ = 0;
    std::map<uint32_t, std::unique_ptr<OneShot<ToldUsage>>> usage_answers_;
    std::map<ObjectId, Loan> lent_;  // shared memory of which the acceptor may have pages
    std::map<uint64_t, std::shared_ptr<ProgramFaultfd>> faultfds_;  // by the socket's inode
    OrphanedHelpers orphaned_helpers_;
    SessionStats stats_;
    std::string failure_;
    ObjectId next_object_ = 1;
    uint64_t started_at_ns_ = 0;
    OwnNamespaces namespaces_;
    bool link_open_ = true;
    bool memory_files_ = false;  // somebody opened a /proc/PID/mem
    bool guards_ = false;        // the acceptor has guard pages
};

}  // namespace gpr
