// When a file becomes shorter, private pages beyond its end disappear, even those that the program
// has written. The kernel does not know that gpr's copy of a file belongs to it, so this is done
// here.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "monitor/home/part.h"
#include "syscall/marshal.h"

namespace gpr {
class Fd;
struct FileSize;
}  // namespace gpr

namespace gpr::home {

class Truncation {
public:
    explicit Truncation(Home& home) : home_(home) {}

    std::vector<FileSize> sizes_before(const HomeProcess& process, uint64_t number,
                                       const SyscallArguments& args);
    Task<void> after_truncation(std::vector<FileSize> before);
    Task<void> truncate_here(HomeThread& thread, Notification n);

private:
    Task<void> drop_beyond(std::shared_ptr<Fd> file, uint64_t size);

    Home& home_;
};

}  // namespace gpr::home
