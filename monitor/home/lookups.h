// Look-ups that acceptors repeat: with an answer about a path goes what it depends on, and as soon
// as inotify tells of a change there, the acceptor forgets the answer. Home looks before it sends
// anything, so nobody can hear of a change before. docs/decisions/0071-look-ups-are-remembered.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "monitor/home/listings.h"
#include "monitor/home/lookup_sequences.h"
#include "monitor/home/part.h"
#include "monitor/home/path_walks.h"
#include "monitor/home/unopened_files.h"
#include "monitor/home/watched_names.h"
#include "syscall/lookup_call.h"
#include "transport/loop.h"
#include "transport/wire.h"

namespace gpr {
struct ForwardedCall;
}  // namespace gpr

namespace gpr::home {

// How long an answer holds, for the acceptor.
struct OfferedLookup {
    std::vector<uint32_t> ids;
    bool absent = false;
    bool is_link = false;  // the status is that of a link itself
    uint32_t spare = 0;
    uint32_t serial = 0;
    // What the same call would tell of another path.
    struct Ahead {
        std::string directory;  // with a slash at its end; "": that of the call
        std::string name;
        std::vector<uint32_t> ids;  // of that of the call: besides those that both have in common
        std::vector<std::byte> status;
        int error = 0;  // ENOENT, ENOTDIR
    };
    size_t common_ids = 0;  // so many, the first of `ids`
    std::vector<Ahead> others;

    void put(wire::Lookup::Builder to) const;
};

class Lookups {
public:
    explicit Lookups(Home& home);

    // A forwarded call is about to be made. It must be among Delegations::served().
    void before_call(pid_t pid, uint32_t number, const uint64_t* args);
    // A thread of the process is about to run here, or the process has ended.
    void forget(pid_t pid);
    // To be called before anything is sent to an acceptor.
    void look_for_changes();

    // What a call looks up, watched from before it is made.
    struct Asked {
        LookupCall call;
        PathWalks::Start start;
        std::string directory, name;
        PathWalks::Way way;
        uint32_t context = 0;
        uint32_t name_id = 0;
        bool as_us = false;     // the caller may do what we may
        bool made = false;      // by make(), after all that has been heard of
        uint32_t spare = 0;     // then, of an open
        bool may_open = false;  // regular files, for a moment
    };
    // Null: its answer is not to be remembered.
    std::unique_ptr<Asked> ask(HomeProcess& process, HomeThread& thread, const ForwardedCall& call);
    // Makes the call in place of its shadow, which would have to be woken. False: it is not made,
    // because that might wait for a disk, or could give another answer.
    bool make(Asked& asked, pid_t pid, ForwardedCall& call);
    // The call has been made. Null likewise.
    std::unique_ptr<OfferedLookup> offer(std::unique_ptr<Asked> asked, HomeProcess& process,
                                         HomeThread& thread, const ForwardedCall& call,
                                         std::span<const std::byte> out);

    // Entries of a directory have been told (getdents64(2)).
    void note_listing(int directory, std::span<const std::byte> entries);
    // Whether nobody can tell that a directory has been listed. Not the root of a mount: what is
    // above it there is not what is above the directory.
    [[nodiscard]] bool may_list(int directory);

private:
    struct Context {
        // It holds as long as all threads of the process see the same under a path as home. 0: they
        // do not.
        uint32_t id = 0;
        bool as_us = false;
    };
    Context context_of(HomeProcess& process);
    [[nodiscard]] bool sees_what_we_see(const HomeProcess& process) const;
    [[nodiscard]] bool changes_context(pid_t pid) const;
    void read_changes();
    Fd open_at_once(int directory, const std::string& name);
    bool find_nothing(const Asked& asked, int64_t result) const;
    bool find_name(const Asked& asked);
    bool find_status(const Asked& asked, std::span<const std::byte> out, OfferedLookup& offered);
    bool watch_status(const Asked& asked, int file, const LocalMounts::File& seen,
                      std::vector<uint32_t>& ids);
    // What to send ahead.
    void find_listed(const Asked& asked, OfferedLookup& offered);
    void foretell(const Asked& asked, OfferedLookup& offered);
    bool look_ahead(const Asked& asked, const std::string& directory, OfferedLookup::Ahead& one);
    void note_listed(const HomeProcess& process, const ForwardedCall& call,
                     std::span<const std::byte> out);
    void clear();
    void tell(const WatchedNames::Gone& gone);

    Home& home_;
    WatchedNames names_;
    PathWalks walks_{names_};
    UnopenedFiles unopened_{names_};
    Listings listings_;
    LookupSequences sequences_;
    std::map<pid_t, Context> contexts_;
    Fd mounts_;  // /proc/self/mountinfo, and again for the loop
    Fd mounts_in_loop_;
    bool is_off_ = false;
    uint32_t serial_ = 0;
    Watch name_watch_, mount_watch_;
};

}  // namespace gpr::home
