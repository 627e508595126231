// Shared memory as node 0 sees it: which mappings show the same object, and when what an acceptor
// has written must be in the file. The rules are in docs/decisions/0005-shared-memory.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/home/shared_file.h"
#include "syscall/marshal.h"

namespace gpr {
class AddressSpace;
struct Mapping;
struct MapsEntry;
}  // namespace gpr

namespace gpr::home {

class SharedMemory {
public:
    explicit SharedMemory(Home& home) : home_(home) {}

    void join_shared(HomeProcess&, Mapping& mapping, const MapsEntry&, const std::string& link);
    Task<void> map_shared(HomeProcess&, Address, uint64_t size, int prot, std::string link = "");
    void note_size(SharedFile& file);
    SharedUse shared_use(HomeProcess& process, uint32_t number, const SyscallArguments& args);
    [[nodiscard]] SharedUse use_of_everything() const;
    Task<void> before_use(const SharedUse& use);
    Task<void> after_use(const SharedUse& use);
    Task<void> save_shared(const AddressSpace& space, Range range);
    Task<void> save_shared(HomeProcess& process);
    [[nodiscard]] bool anyone_writes_shared() const;
    void note_protection(const Mapping& mapping);
    // For a private file mapping that is about to be recorded: sets Mapping::follows. link: the
    // file that it was made from.
    void follow(Mapping& mapping, const std::string& link) const;
    void follow(Mapping& mapping, const MapsEntry& shown_as) const;
    void forget_unseen(const std::vector<Mapping>& gone);
    void forget_memory(HomeProcess& process);
    Task<void> attach_for(HomeProcess& process, HomeThread& thread, Frame frame);
    Task<void> note_remapped(HomeProcess& process, Range range);
    Task<void> note_attached(HomeProcess& process, Address at);
    std::map<ObjectId, SharedFile>& files() { return files_; }

private:
    [[nodiscard]] SharedFile* find(const SharedIdentity& identity);
    void resize(SharedFile& file, uint64_t pages);
    void note_writer(SharedFile& file);
    void let_private_follow(const SharedFile& file);

    Home& home_;
    std::map<ObjectId, SharedFile> files_;
    // By device and inode, as mappings show them. Several objects may have the same.
    std::multimap<std::pair<uint64_t, uint64_t>, ObjectId> by_inode_;
};

}  // namespace gpr::home
