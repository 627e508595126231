#include "monitor/paging/installs.h"

#include <unistd.h>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

bool Installs::materialise(Fragment& fragment, const Mapping& mapping, Address at) {
    if (mapping.backing == Backing::native_file) return true;
    if (pager_.unfilled.is_unfilled(fragment, mapping, at)) {
        pager_.unfilled.tell_unfilled(fragment, at);
        return true;
    }
    if (!mapping.content) {
        fragment.install_zero(at, 1, true);
        return true;
    }
    std::vector<std::byte> page(page_size);
    auto offset = static_cast<off_t>(mapping.content_offset + (at - mapping.range.begin));
    if (pread(mapping.content->get(), page.data(), page_size, offset) <= 0) return false;
    fragment.install(at, page, true);
    return true;
}

void Installs::install(const Install& action) {
    if (must_wait(action.run)) return spawn(install_later(action));
    pager_.faults.note_arrival();
    spdlog::trace("install: object {:#x} pages {}+{} presence {} first content {}",
                  action.run.object, action.run.first, action.run.count,
                  static_cast<int>(action.presence), static_cast<int>(action.contents.at(0).kind));
    tell(action);
    if (pager_.shared.contains(action.run.object)) {
        bool at_home = pager_.shared.memfd(action.run.object) < 0;
        if (at_home && pager_.views.is_changing())
            return spawn(pager_.room.install_when_settled(action));
        pager_.shared.install(action);
        core_.agent.on_installed(action.id, core_.now());
        return;
    }
    install_private(action);
    core_.agent.on_installed(action.id, core_.now());
    core_.moved.notify_all();
}

bool Installs::must_wait(const PageRun& run) const {
    return pager_.removals.is_being_removed(run) || pager_.ranges.is_locked(run);
}

void Installs::tell(const Install& action) const {
    if (!core_.observer) return;
    core_.observer->on_pages(action.run, action.presence, action.contents.at(0).kind);
}

void Installs::install_private(const Install& action) {
    for (const Piece& p : core_.pieces(action.run)) {
        bool writable = action.presence == Presence::exclusive;
        if (p.mapping->trapped) {
            pager_.trapped.install(p, action);
            continue;
        }
        if (p.mapping->backing == Backing::native_file) {
            for (uint32_t i = 0; i < p.count; i++) {
                const PageContent& c = action.contents[p.first + i];
                Address at = p.address + i * page_size;
                // The file's pages are unchanged, and may contain breakpoints.
                if (c.kind == ContentKind::data && !p.mapping->functions) {
                    p.fragment->memory().write(at, c.bytes.get(), page_size);
                }
            }
            continue;
        }
        core_.ensure_registered(*p.fragment, *p.mapping);
        bool born_here = pager_.objects.is_born_here(action.run.object);
        for (uint32_t i = 0; i < p.count; i++) {
            const PageContent& c = action.contents[p.first + i];
            Address at = p.address + i * page_size;
            if (c.kind == ContentKind::data) {
                uint32_t n = 1;
                while (
                    i + n < p.count && action.contents[p.first + i + n].kind == ContentKind::data &&
                    action.contents[p.first + i + n].bytes.get() == c.bytes.get() + n * page_size) {
                    n++;
                }
                p.fragment->install(at, {c.bytes.get(), n * page_size}, writable);
                i += n - 1;
            } else if (p.mapping->program_fills) {
                pager_.unfilled.tell_unfilled(*p.fragment, at);
            } else if (born_here && p.mapping->content) {
                pager_.absent.give_born(*p.fragment, *p.mapping, at);
                if (!writable) p.fragment->write_protect({at, at + page_size});
            } else {
                uint32_t n = 1;
                while (i + n < p.count &&
                       action.contents[p.first + i + n].kind != ContentKind::data) {
                    n++;
                }
                p.fragment->install_zero(at, n, writable);
                i += n - 1;
            }
        }
    }
}

std::vector<Install> Installs::current_parts(const Install& action) const {
    std::vector<Install> parts;
    for (uint32_t i = 0; i < action.run.count; i++) {
        if (!core_.agent.is_current(action.id, action.run[i])) continue;
        const bool continues = !parts.empty() && parts.back().run.first + parts.back().run.count ==
                                                     action.run[i].index;
        if (!continues) {
            parts.push_back({action.id,
                             {action.run.object, action.run[i].index, 0},
                             action.presence,
                             action.wake,
                             {}});
        }
        parts.back().run.count++;
        parts.back().contents.push_back(action.contents[i]);
    }
    return parts;
}

Task<void> Installs::install_later(Install action) {
    while (must_wait(action.run)) co_await core_.moved.wait();
    pager_.faults.note_arrival();
    const bool is_shared = pager_.shared.contains(action.run.object);
    if (is_shared && pager_.shared.memfd(action.run.object) < 0) co_await pager_.views.settled();
    for (const Install& part : current_parts(action)) {
        tell(part);
        if (!pager_.shared.contains(part.run.object)) {
            if (!is_shared) install_private(part);
        } else {
            pager_.shared.install(part);
        }
    }
    core_.agent.on_installed(action.id, core_.now());
    core_.moved.notify_all();
    core_.settle();
}

void Installs::unprotect(const Unprotect& action) {
    pager_.faults.note_arrival();
    spdlog::trace("unprotect: object {:#x} pages {}+{}", action.run.object, action.run.first,
                  action.run.count);
    if (core_.observer)
        core_.observer->on_pages(action.run, Presence::exclusive, ContentKind::none);
    if (pager_.shared.contains(action.run.object)) pager_.views.enable(action.run);
    for (const Piece& p : core_.pieces(action.run)) {
        if (p.mapping->backing == Backing::native_file) continue;
        p.fragment->write_enable({p.address, p.address + p.count * page_size});
    }
    core_.agent.on_installed(action.id, core_.now());
}

void Installs::wake(const Wake& action) {
    pager_.faults.note_arrival();
    spdlog::trace("wake: object {:#x} page {} presence {}", action.key.object, action.key.index,
                  static_cast<int>(core_.agent.presence(action.key)));
    if (core_.observer) core_.observer->on_present(action.key);
    if (pager_.shared.contains(action.key.object)) {
        PageRun page{action.key.object, action.key.index, 1};
        if (core_.agent.presence(action.key) == Presence::exclusive) {
            pager_.views.enable(page);
        } else {
            pager_.views.wake(page);
        }
        return;
    }
    auto p = core_.place_of(action.key);
    if (!p) return;
    Range page{p->address, p->address + page_size};
    if (p->mapping->trapped) {
        if (!pager_.trapped.show_now(*p->fragment, *p->mapping, p->address))
            p->fragment->wake(page);
        return;
    }
    if (core_.agent.presence(action.key) == Presence::exclusive && p->mapping->registered) {
        // Threads that wait for the program to fill the page must not be woken; lifting the write
        // protection would wake them, too.
        if (pager_.unfilled.is_unfilled(*p->fragment, *p->mapping, p->address)) {
            pager_.unfilled.tell_unfilled(*p->fragment, p->address);
            return;
        }
        p->fragment->write_enable(page);
        pager_.absent.give_born(*p->fragment, *p->mapping, p->address);
    }
    p->fragment->wake(page);
}

}  // namespace gpr::paging
