// Private file mappings. A writable one is replaced by a copy in anonymous memory (make_anonymous),
// which also has to show the file again after MADV_DONTNEED, and in children.
#pragma once

#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "monitor/home/file_contents.h"
#include "monitor/home/part.h"
#include "monitor/node/private_files.h"

namespace gpr {
struct DiscardPlan;
struct Mapping;
}  // namespace gpr

namespace gpr::home {

class FileCopies {
public:
    explicit FileCopies(Home& home) : home_(home), contents_(home) {}

    Task<Result<void>> make_anonymous(HomeProcess& process, Mapping& mapping,
                                      std::vector<Range> own = {});
    Task<Result<void>> make_writable(HomeProcess& process, Mapping& mapping);
    // The same for a mapping that the program's threads may be using. It stays read-only.
    Task<Result<void>> make_writable_in_use(HomeProcess& process, Address at);
    void note_copied(HomeProcess& process, const Mapping& mapping);
    Task<int64_t> discard_here(HomeProcess& process, StubThread& stub, Notification n);
    Task<void> discard_for(HomeProcess& process, HomeThread& thread, Frame frame);
    static void inherit_copies(const HomeProcess& parent, HomeProcess& child);
    // Whether a copy that the child has inherited reaches beyond the end of its file. The kernel
    // would treat that part as ordinary memory.
    static bool has_beyond_end(const HomeProcess& parent, const HomeProcess& child);
    static void note_native_call(HomeProcess& process, const Notification& n);
    std::vector<Mapping> parts_with_files(HomeProcess& process, const Mapping& whole);
    PrivateFiles& files() { return files_; }
    FileContents& contents() { return contents_; }

private:
    void begin_at_acceptor(HomeProcess& process, Mapping fresh);
    Task<int64_t> discard_content(HomeProcess& process, StubThread& stub, DiscardPlan plan);

    Home& home_;
    PrivateFiles files_;
    FileContents contents_;
};

}  // namespace gpr::home
