// How PageAgent answers a census: which of the pages without an entry the program has touched. Only
// the birth node knows.
#include <algorithm>
#include <utility>

#include "base/result.h"
#include "mm/page_agent_core.h"

namespace gpr {

void PageAgent::Core::handle(const Census& census) {
    const PageRun& run = census.run;
    if (run.count == 0 || run.first >= max_object_pages ||
        run.count > max_object_pages - run.first) {
        ++stats.bad_messages;
        return;
    }
    const Object* o = object_of(run.object);
    if (!o || o->birth != self) return reports.touched(census, run.count, pushed, {});
    const uint64_t id = operations.new_id();
    censuses[id] = census;
    out.add(FindTouched{id, run});
}

void PageAgent::on_found(uint64_t id, uint64_t looked, const std::vector<PageSpan>& touched,
                         uint64_t now_ns) {
    Core& c = *core_;
    c.begin(now_ns);
    auto it = c.censuses.find(id);
    GPR_ASSERT(it != c.censuses.end());
    const Census census = it->second;
    c.censuses.erase(it);
    GPR_ASSERT(looked > 0 && looked <= census.run.count && touched.size() <= max_touched_spans);
    const uint64_t end = census.run.first + looked;
    std::vector<PageSpan> spans;
    const Core::Object* o = c.object_of(census.run.object);
    for (const PageSpan& span : touched) {
        bool joins = false;
        for (uint64_t i = span.first; o && i < span.first + span.count; ++i) {
            const bool untold = c.state(*o, i).untouched;
            if (untold && joins) ++spans.back().count;
            if (untold && !joins) spans.push_back({i, 1});
            joins = untold;
        }
    }
    // Pages about to be given away are no longer in memory, and the directory may not know it yet.
    for (const auto& [key, b] : c.busy) {
        if (o && key.object == census.run.object && census.run.first <= key.index &&
            key.index < end) {
            spans.push_back({key.index, 1});
        }
    }
    c.reports.touched(census, looked, c.pushed, std::move(spans));
    c.end();
}

}  // namespace gpr
