#include "mm/directory_reports.h"

#include <algorithm>
#include <utility>

namespace gpr {

void DirectoryReports::surrender(PageKey key, const BusyPage::PageRecall& recall, Presence left,
                                 PageContent content) {
    const bool bulk = recall.optional;
    auto& message = agent_.out.extend_message<Surrender>(
        directory_node, key, bulk, agent_.clock,
        [&](const Surrender& s) {
            return s.left == left && s.round == recall.round &&
                   (!bulk || s.run.count < bulk_run_pages);
        },
        [&] {
            return Surrender{{}, left, recall.round, {}, {}};
        });
    message.epochs.push_back(recall.epoch);
    message.contents.push_back(std::move(content));
}

void DirectoryReports::acknowledge(uint32_t collect) {
    Ack* last = agent_.out.last_message<Ack>(directory_node);
    if (last && last->collect == collect) {
        ++last->pages;
    } else {
        agent_.out.add(SendMessage{directory_node, true, Message{agent_.clock, Ack{collect, 1}}});
    }
}

void DirectoryReports::touched(const Census& census, uint64_t looked, uint64_t pushed,
                               std::vector<PageSpan> spans) {
    std::ranges::sort(spans, {}, &PageSpan::first);
    std::vector<PageSpan> joined;
    for (const PageSpan& span : spans) {
        const uint64_t told =
            joined.empty() ? census.run.first : joined.back().first + joined.back().count;
        if (!joined.empty() && span.first <= told) {
            joined.back().count = std::max(told, span.first + span.count) - joined.back().first;
        } else if (joined.size() < max_touched_spans) {
            joined.push_back(span);
        } else {
            looked = span.first - census.run.first;
            break;
        }
    }
    PageRun run{census.run.object, census.run.first, static_cast<uint32_t>(looked)};
    agent_.out.add(
        SendMessage{directory_node,
                    false,
                    {agent_.clock, Touched{run, census.collect, pushed, std::move(joined)}}});
}

}  // namespace gpr
