#include "acceptor/worker/mapping_changes.h"

#include "acceptor/worker/contents.h"
#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/futexes.h"
#include "acceptor/worker/shared_memory.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/address_plan.h"

namespace gpr::worker {

MappingChanges::MappingChanges(Worker& worker)
    : changes(worker.pager, worker.self, *this), worker_(worker) {}

Task<void> MappingChanges::apply_mapping(Frame frame) {
    auto change = frame->session().getMapping();
    if (change.isApplied()) {
        RemoteProcess* process = worker_.find_process(change.getPid());
        if (process && process->changes) process->changes->applied(change.getApplied());
        co_return;
    }
    auto guard = co_await worker_.metadata.lock();
    if (change.isMark()) {
        tell_applied(worker_.link, change.getPid(), change.getMark());
        co_return;
    }
    if (apply_to_object(change)) co_return;
    RemoteProcess* process = worker_.find_process(change.getPid());
    auto made = change_from_wire(change);
    if (!process || !process->fragment || !made) co_return;
    co_await changes.apply(process->fragment, std::move(*made), directory_node);
}

bool MappingChanges::apply_to_object(wire::MappingChange::Reader change) {
    if (change.isResize()) {
        worker_.shared_memory.resize_shared(change.getResize());
    } else if (change.isForget()) {
        worker_.pager.shared.erase(change.getForget());
    } else if (change.isUsedAtHome()) {
        worker_.futexes.use_at_home(change.getUsedAtHome());
    } else {
        return false;
    }
    return true;
}

void MappingChanges::tell(pid_t pid, const AddressChange& change, NodeId made_at) {
    if (made_at == worker_.self) worker_.tell(pid, change);
}

ObjectId MappingChanges::new_object() { return worker_.next_object++; }

// Private memory of a file of this node begins with that file's content, which only this node has.
void MappingChanges::show_same_file(pid_t, ObjectId, Mapping& m) {
    const bool ours = m.source != 0 && owner_of_source(m.source) == worker_.self;
    const bool begins_here = ours && m.birth == worker_.self;
    if (begins_here && !worker_.file_mappings.find_content(m)) {
        spdlog::warn("a file that the program has mapped is not known any more");
    }
}

bool MappingChanges::admit(pid_t pid, Mapped& made, NodeId) {
    Mapping& m = made.mapping;
    m.trapped = m.code == CodeClass::home;
    if (!is_place(m.range) || m.range.overlaps(reserved_range)) {
        worker_.link.close("home sent a mapping that cannot be");
        return false;
    }
    show_same_file(pid, m.object, m);
    if (m.shared) worker_.shared_memory.know_shared(m.object, made.object_pages);
    return true;
}

// Home saves shared memory before it tells us of the change.
Task<void> MappingChanges::save_shared(std::shared_ptr<Fragment>, Range) { co_return; }

Task<void> MappingChanges::show_shared(std::shared_ptr<Fragment> fragment, Mapping mapping) {
    co_await worker_.shared_memory.show_shared(*fragment, mapping);
}

Task<bool> MappingChanges::show_content(std::shared_ptr<Fragment> fragment, Mapping mapping) {
    const Address at = mapping.range.begin;
    std::vector<Mapping> mappings;
    mappings.push_back(std::move(mapping));
    co_await worker_.contents.show(fragment, std::move(mappings));
    const Mapping* m = fragment->space.find(at);
    co_return m && m->backing == Backing::native_file;
}

Task<void> MappingChanges::let_write(std::shared_ptr<Fragment> fragment, Range range) {
    co_await worker_.file_mappings.copy_files(fragment, range);
    co_await worker_.contents.give_up(std::move(fragment), range);
}

Task<void> MappingChanges::let_differ(std::shared_ptr<Fragment> fragment, Range range) {
    co_await worker_.contents.give_up(std::move(fragment), range);
}

// Home tells us when no mapping shows an object any more.
void MappingChanges::forget_shared(const std::vector<Mapping>&) {}

void MappingChanges::cannot_follow(pid_t pid, NodeId, const std::string& why) {
    const RemoteProcess* process = worker_.find_process(pid);
    bool ends = !process || !process->fragment || process->fragment->executor().dead();
    if (!ends) worker_.link.close(why);
}

}  // namespace gpr::worker
