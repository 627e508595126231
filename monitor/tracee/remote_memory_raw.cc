#include "monitor/tracee/remote_memory_raw.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>

namespace gpr {

Result<RemoteMemory> RemoteMemory::open(pid_t pid) {
    std::string path = fmt::format("/proc/{}/mem", pid);
    int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return fail(errno, "cannot open " + path);
    return RemoteMemory(Fd(fd));
}

size_t RemoteMemory::read(Address from, void* to, size_t size) const {
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(fd_.get(), static_cast<char*>(to) + done, size - done,
                          static_cast<off_t>(from.value + done));
        if (n <= 0) break;
        done += static_cast<size_t>(n);
    }
    return done;
}

size_t RemoteMemory::write(Address to, const void* from, size_t size) const {
    size_t done = 0;
    while (done < size) {
        ssize_t n = pwrite(fd_.get(), static_cast<const char*>(from) + done, size - done,
                           static_cast<off_t>(to.value + done));
        if (n <= 0) break;
        done += static_cast<size_t>(n);
    }
    return done;
}

Result<std::vector<MapsEntry>> read_maps(pid_t pid) {
    std::string path = fmt::format("/proc/{}/maps", pid);
    std::ifstream in(path);
    if (!in) return fail(errno, "cannot open " + path);
    std::vector<MapsEntry> entries;
    std::string line;
    while (std::getline(in, line)) {
        MapsEntry e;
        uint64_t begin = 0, end = 0;
        char perms[5] = {};
        unsigned major = 0, minor = 0;
        int name_at = 0;
        int n = std::sscanf(line.c_str(),
                            "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &begin,
                            &end, perms, &e.offset, &major, &minor, &e.inode, &name_at);
        if (n < 7) continue;
        e.range = {{begin}, {end}};
        e.device = makedev(major, minor);
        e.prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
                 (perms[2] == 'x' ? PROT_EXEC : 0);
        e.shared = perms[3] == 's';
        if (name_at > 0) e.name = line.substr(static_cast<size_t>(name_at));
        entries.push_back(std::move(e));
    }
    return entries;
}

std::string command_name(pid_t pid) {
    std::ifstream in(fmt::format("/proc/{}/comm", pid));
    std::string name;
    std::getline(in, name);
    return name;
}

Result<Address> find_syscall_instruction(const std::vector<MapsEntry>& maps,
                                         const RemoteMemory& memory) {
    for (const MapsEntry& e : maps) {
        if (e.name != "[vdso]") continue;
        std::vector<unsigned char> text(e.range.size());
        size_t got = memory.read(e.range.begin, text.data(), text.size());
        for (size_t i = 0; i + 1 < got; i++) {
            if (text[i] == 0x0f && text[i + 1] == 0x05) return e.range.begin + i;
        }
    }
    return fail(
        "the program has no vdso to make system calls from (vdso=0 on the kernel command line?)");
}

}  // namespace gpr
