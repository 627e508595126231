// Read delegation: an acceptor answers for regular files and directories that its threads have
// opened for reading, until something could tell the difference.
// docs/decisions/0068-read-delegation.md
//
// A lease on the open file (fcntl(2), F_RDLCK) says that its content holds: home's kernel makes who
// wants to write wait until home has the file back from the acceptor. Status that changes without
// an open (chmod, link, unlink) is watched by inotify; home looks before it sends anything, so that
// the acceptor never hears of what came after such a change before it has lost the file. Of a
// directory inotify tells every change.
//
// The acceptor keeps the offset. So it has a file only while nobody else can use the descriptor:
// one process has it, all threads of which are at that acceptor, and every call of these that uses
// it for more than reading takes the file back first, if the acceptor has not given it back before.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "mm/page_protocol.h"
#include "monitor/home/file_watchers.h"
#include "monitor/home/part.h"
#include "monitor/home/sleepers.h"
#include "syscall/marshal.h"
#include "transport/loop.h"
#include "transport/wire.h"

namespace gpr {
class FrameBuilder;
struct Call;
struct ForwardedCall;
}  // namespace gpr

namespace gpr::home {

// What the acceptor is told of a file.
struct OfferedFile {
    uint64_t id = 0;
    struct stat status {};
    std::vector<std::byte> content;  // what it begins with; of a directory all entries

    // frame: of the answer that tells of it, which must not outlive this.
    void put(wire::Delegation::Builder to, FrameBuilder& frame) const;
};

class OpenFileWatches;

class Delegations {
public:
    explicit Delegations(Home& home);
    ~Delegations();

    struct Served {
        pid_t pid = 0;
        uint32_t number = 0;
        SyscallArguments args{};
    };
    // A forwarded call is being made, from here to the destruction of what is returned.
    class Service {
    public:
        Service(std::list<Served>& all, Served call)
            : all_(all), at_(all.insert(all.end(), call)) {}
        ~Service() { all_.erase(at_); }
        Service(const Service&) = delete;
        Service& operator=(const Service&) = delete;

    private:
        std::list<Served>& all_;
        std::list<Served>::iterator at_;
    };
    std::list<Served>& served() { return served_; }
    // Whether home may open and read files, as far as the session is concerned. Looks at processes
    // that have been split since.
    [[nodiscard]] bool nobody_notices();
    // The process is at rest: what it does now is not seen.
    void note_rest(pid_t pid) { watchers_.forget(pid); }
    // Takes back what the call must not find delegated. It must be among the served ones.
    Task<void> before_call(pid_t pid, uint32_t number, SyscallArguments args);
    // A thread at home makes this call. If it will watch files, all that are out are recalled.
    void note_call_here(uint32_t number);
    // To be called before a thread of the process runs here.
    Task<void> end_all(pid_t pid);

    // An open failed with EAGAIN, as one that must not wait does while a lease is being broken.
    // Makes it once more if that may have been a lease of ours.
    Task<void> open_again(StubThread& shadow, std::vector<gpr::Call>& call);
    // The call has been made; its shadow is locked. Null: it has not opened a file, or that is not
    // delegated.
    Task<std::unique_ptr<OfferedFile>> offer(HomeProcess& process, HomeThread& thread,
                                             const ForwardedCall& call);
    void on_return(wire::FileReturn::Reader back);
    // The process has ended.
    void forget(pid_t pid);
    // Whether all threads of the process are at this thread's acceptor, and nobody looks into it.
    static bool all_at(const HomeProcess& process, const HomeThread& thread);
    // A link is lost: writers must not wait for it.
    void forget_all();
    // To be called before anything is sent to an acceptor: takes back what has changed.
    void look_for_changes();

private:
    struct Held;
    using Files = std::map<int, std::unique_ptr<Held>>;  // by descriptor

    // What does not depend on where threads are.
    static bool may_ever_offer(const HomeProcess& process, const HomeThread& thread);
    [[nodiscard]] bool may_offer(const HomeProcess& process, const HomeThread& thread,
                                 int number) const;
    [[nodiscard]] bool shares_descriptors(pid_t pid) const;
    std::unique_ptr<Held> take(const HomeProcess& process, NodeId node, int number);
    static Task<void> read_head(OfferedFile& offered, StubThread& shadow, int number, int fd);
    static Task<bool> list(OfferedFile& offered, StubThread& shadow, int number);
    bool watch(Held& held, bool is_directory);
    void note_special_file(int fd);
    void note_listing(pid_t pid, bool listed);
    Task<void> close(pid_t pid, int number);
    [[nodiscard]] std::shared_ptr<StubThread> idle_shadow(pid_t pid) const;
    void recall(pid_t pid, int number, Held& held);
    bool recall_if(const std::function<bool(pid_t pid, int number)>& is_it);
    void recall_held(const std::function<bool(const Held&)>& is_it);
    void turn_off();
    void on_break();
    void recall_changed();
    Held* find(pid_t pid, int number, uint64_t id);

    Home& home_;
    Sleepers sleepers_;
    std::list<Served> served_;
    std::unique_ptr<OpenFileWatches> watched_;
    std::map<pid_t, Files> files_;        // which use it to their end
    std::map<pid_t, int> closing_;        // how many descriptors, by process
    std::map<pid_t, unsigned> unlisted_;  // directories that came back unlisted, for the most part
    uint64_t last_id_ = 0;
    bool is_off_ = false;  // somebody looks at offsets, watches files, or has a lease
    FileWatchers watchers_;
    Fd breaks_;  // a signalfd
    Watch break_watch_, change_watch_;
    Signal changed_;
};

}  // namespace gpr::home
