// How a process's first thread gets into gpr's stub. By ptrace it maps the stub and its mailbox;
// then the stub makes the calls that create the process's userfaultfd and its helpers.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "monitor/home/part.h"
#include "monitor/tracee/mailbox.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr::home {

class StubEntry {
public:
    StubEntry(Home& home, Fd stub_code) : home_(home), stub_code_(std::move(stub_code)) {}

    static Task<void> take_mask(HomeThread& thread, uint64_t mask);
    Task<Result<void>> prepare_stub(HomeProcess& process, HomeThread& thread);
    // Answers a park call from outside of the stub: a thread that is being prepared asks for a
    // descriptor.
    void answer(const HomeProcess& process, const Notification& n) const;

private:
    Task<Result<int64_t>> inject(HomeThread& thread, uint64_t number, uint64_t a = 0,
                                 uint64_t b = 0, uint64_t c = 0, uint64_t d = 0, uint64_t e = 0,
                                 uint64_t f = 0);
    // The stub's code and a mailbox, as descriptors of the process; and our end of the mailbox.
    struct Files {
        int64_t code = -1, mailbox = -1;
        std::unique_ptr<Mailbox> box;
    };
    // most: how large its mailbox may be, in bytes.
    Task<Result<Files>> files_of_ours(HomeProcess& process, HomeThread& thread, uint64_t most);
    Task<Result<Files>> files_of_its_own(HomeProcess& process, HomeThread& thread,
                                         const std::vector<MapsEntry>& maps, uint64_t most);
    Task<Result<void>> enter_stub(HomeProcess& process, HomeThread& thread, const Files& files);
    Task<Result<void>> open_uffd(HomeProcess& process, HomeThread& thread);

    Home& home_;
    Fd stub_code_;
};

}  // namespace gpr::home
