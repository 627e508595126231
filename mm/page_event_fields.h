// The fields of messages and events, for writing them down. Of a page's content only the kind is
// kept: no decision depends on the bytes.
#pragma once

#include "mm/compact_bytes.h"
#include "mm/page_directory.h"

namespace gpr {

auto fields(Either<PageKey> auto& x) { return std::tie(x.object, x.index); }
auto fields(Either<PageRun> auto& x) { return std::tie(x.object, x.first, x.count); }
auto fields(Either<PageContent> auto& x) { return std::tie(x.kind); }
auto fields(Either<Seniority> auto& x) { return std::tie(x.age, x.node, x.tid); }
auto fields(Either<Request> auto& x) {
    return std::tie(x.run, x.must, x.access, x.have, x.tid, x.age, x.have_epochs, x.lost);
}
auto fields(Either<Grant> auto& x) {
    return std::tie(x.run, x.presence, x.tid, x.collect, x.epochs, x.contents);
}
auto fields(Either<Recall> auto& x) {
    return std::tie(x.run, x.leave, x.want_data, x.optional, x.round, x.for_whom, x.epochs);
}
auto fields(Either<Surrender> auto& x) {
    return std::tie(x.run, x.left, x.round, x.epochs, x.contents);
}
auto fields(Either<Push> auto& x) {
    return std::tie(x.run, x.to, x.left, x.grant, x.tid, x.epochs, x.contents);
}
auto fields(Either<Refused> auto& x) { return std::tie(x.run, x.anchor, x.epochs); }
auto fields(Either<Ack> auto& x) { return std::tie(x.collect, x.pages); }
auto fields(Either<Census> auto& x) { return std::tie(x.run, x.collect); }
auto fields(Either<PageSpan> auto& x) { return std::tie(x.first, x.count); }
auto fields(Either<Touched> auto& x) { return std::tie(x.run, x.collect, x.pushed, x.touched); }
auto fields(Either<Message> auto& x) { return std::tie(x.clock, x.body); }
auto fields(Either<SendMessage> auto& x) { return std::tie(x.to, x.bulk, x.message); }
auto fields(Either<CollectDone> auto& x) { return std::tie(x.cookie, x.collected, x.left_behind); }

namespace directory_event {
auto fields(Either<AddObject> auto& x) { return std::tie(x.object, x.birth); }
auto fields(Either<EraseObject> auto& x) { return std::tie(x.object); }
auto fields(Either<Drop> auto& x) { return std::tie(x.object, x.first, x.count); }
auto fields(Either<Told> auto& x) { return std::tie(x.from, x.message, x.now_ns); }
auto fields(Either<Collect> auto& x) {
    return std::tie(x.object, x.first, x.count, x.node, x.access, x.cookie, x.now_ns);
}
auto fields(Either<Hold> auto& x) { return std::tie(x.object); }
auto fields(Either<HoldAll> auto& x) { return std::tie(x.object); }
auto fields(Either<CopyObject> auto& x) { return std::tie(x.from, x.to); }
auto fields(Either<Release> auto& x) { return std::tie(x.object, x.now_ns); }
auto fields(Either<RemoveNode> auto& x) { return std::tie(x.node, x.now_ns); }
auto fields(Either<Decided> auto& x) { return std::tie(x.decisions); }
}  // namespace directory_event

}  // namespace gpr
