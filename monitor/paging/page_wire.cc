#include "monitor/paging/page_wire.h"

#include "base/address.h"

namespace gpr {

namespace {

using Body = wire::PageMessage;

void put_run(Body::Builder out, const PageRun& run) {
    out.setObject(run.object);
    out.setFirst(run.first);
    out.setCount(run.count);
}

void put_epochs(Body::Builder out, const std::vector<Epoch>& epochs) {
    auto list = out.initEpochs(static_cast<unsigned>(epochs.size()));
    for (unsigned i = 0; i < epochs.size(); i++) list.set(i, epochs[i]);
}

void put_contents(capnp::Data::Builder kinds, FrameBuilder& frame,
                  const std::vector<PageContent>& contents) {
    for (size_t i = 0; i < contents.size(); i++) {
        kinds[i] = static_cast<uint8_t>(contents[i].kind);
        if (contents[i].kind == ContentKind::data)
            frame.add_raw({contents[i].bytes.get(), page_size});
    }
}

struct Encoder {
    FrameBuilder& frame;
    Body::Builder out;

    void operator()(const Request& m) {
        put_run(out, m.run);
        put_epochs(out, m.have_epochs);
        auto r = out.initRequest();
        r.setMust(m.must);
        r.setAccess(static_cast<uint8_t>(m.access));
        r.setHave(static_cast<uint8_t>(m.have));
        r.setTid(m.tid);
        r.setAge(m.age);
        r.setLost(m.lost);
    }
    void operator()(const Grant& m) {
        put_run(out, m.run);
        put_epochs(out, m.epochs);
        auto g = out.initGrant();
        g.setPresence(static_cast<uint8_t>(m.presence));
        g.setTid(m.tid);
        g.setCollect(m.collect);
        put_contents(g.initContents(static_cast<unsigned>(m.contents.size())), frame, m.contents);
    }
    void operator()(const Recall& m) {
        put_run(out, m.run);
        put_epochs(out, m.epochs);
        auto r = out.initRecall();
        r.setLeave(static_cast<uint8_t>(m.leave));
        r.setWantData(m.want_data);
        r.setOptional(m.optional);
        r.setAge(m.for_whom.age);
        r.setNode(m.for_whom.node);
        r.setTid(m.for_whom.tid);
        r.setRound(m.round);
    }
    void operator()(const Surrender& m) {
        put_run(out, m.run);
        put_epochs(out, m.epochs);
        auto s = out.initSurrender();
        s.setLeft(static_cast<uint8_t>(m.left));
        s.setRound(m.round);
        put_contents(s.initContents(static_cast<unsigned>(m.contents.size())), frame, m.contents);
    }
    void operator()(const Push& m) {
        put_run(out, m.run);
        put_epochs(out, m.epochs);
        auto p = out.initPush();
        p.setTo(m.to);
        p.setLeft(static_cast<uint8_t>(m.left));
        p.setGrant(static_cast<uint8_t>(m.grant));
        p.setTid(m.tid);
        put_contents(p.initContents(static_cast<unsigned>(m.contents.size())), frame, m.contents);
    }
    void operator()(const Refused& m) {
        put_run(out, m.run);
        put_epochs(out, m.epochs);
        out.setRefused(m.anchor);
    }
    void operator()(const Ack& m) {
        out.setCount(m.pages);
        out.setAck(m.collect);
    }
    void operator()(const Census& m) {
        put_run(out, m.run);
        out.setCensus(m.collect);
    }
    void operator()(const Touched& m) {
        put_run(out, m.run);
        auto t = out.initTouched();
        t.setCollect(m.collect);
        t.setPushed(m.pushed);
        auto spans = t.initSpans(static_cast<unsigned>(2 * m.touched.size()));
        for (unsigned i = 0; i < m.touched.size(); i++) {
            spans.set(2 * i, m.touched[i].first);
            spans.set(2 * i + 1, m.touched[i].count);
        }
    }
};

class Decoder {
public:
    explicit Decoder(std::shared_ptr<ReceivedFrame> frame)
        : frame_(std::move(frame)), in_(frame_->session().getPages()) {}

    Result<Message> decode() {
        Message m;
        m.clock = in_.getClock();
        run_ = {in_.getObject(), in_.getFirst(), in_.getCount()};
        for (Epoch e : in_.getEpochs()) epochs_.push_back(e);
        switch (in_.which()) {
            case Body::REQUEST: m.body = request(in_.getRequest()); break;
            case Body::GRANT: m.body = grant(in_.getGrant()); break;
            case Body::RECALL: m.body = recall(in_.getRecall()); break;
            case Body::SURRENDER: m.body = surrender(in_.getSurrender()); break;
            case Body::PUSH: m.body = push(in_.getPush()); break;
            case Body::REFUSED: m.body = Refused{run_, in_.getRefused(), epochs_}; break;
            case Body::ACK: m.body = Ack{in_.getAck(), run_.count}; return m;
            case Body::CENSUS: m.body = Census{run_, in_.getCensus()}; return m;
            case Body::TOUCHED: m.body = touched(in_.getTouched()); return checked(std::move(m));
        }
        if (run_.count == 0 || run_.count > max_run_pages || run_.first + run_.count < run_.first) {
            bad_ = "a run of impossible size";
        }
        if (epochs_.size() > run_.count) bad_ = "more epochs than pages";
        if (in_.which() != Body::REQUEST && epochs_.size() != run_.count) bad_ = "missing epochs";
        return checked(std::move(m));
    }

private:
    Result<Message> checked(Message m) {
        if (bad_) return fail(EPROTO, fmt::format("the peer sent a page message with {}", bad_));
        return m;
    }
    template <class Enum>
    Enum checked(uint8_t value, Enum last) {
        if (value > static_cast<uint8_t>(last)) bad_ = "an unknown code";
        return static_cast<Enum>(value);
    }

    std::vector<PageContent> contents(capnp::Data::Reader kinds) {
        std::vector<PageContent> out(kinds.size());
        if (kinds.size() != run_.count) bad_ = "contents that do not match its run";
        size_t at = 0;
        for (size_t i = 0; i < kinds.size(); i++) {
            out[i].kind = checked(kinds[i], ContentKind::absent);
            if (out[i].kind != ContentKind::data) continue;
            if (at + page_size > frame_->raw().size()) {
                bad_ = "less page content than it claims";
                return out;
            }
            out[i].bytes = std::shared_ptr<const std::byte>(frame_, frame_->raw().data() + at);
            at += page_size;
        }
        return out;
    }

    Request request(wire::PageRequest::Reader r) {
        Request m{run_,
                  r.getMust(),
                  checked(r.getAccess(), Access::write),
                  checked(r.getHave(), Presence::exclusive),
                  r.getTid(),
                  r.getAge(),
                  epochs_,
                  r.getLost()};
        if (m.must > run_.count || epochs_.size() < m.must) bad_ = "a wish beyond its run";
        return m;
    }
    Grant grant(wire::PageGrant::Reader g) {
        return {run_,       checked(g.getPresence(), Presence::exclusive),
                g.getTid(), g.getCollect(),
                epochs_,    contents(g.getContents())};
    }
    Recall recall(wire::PageRecall::Reader r) {
        return {run_,
                checked(r.getLeave(), Presence::exclusive),
                r.getWantData(),
                r.getOptional(),
                r.getRound(),
                {r.getAge(), r.getNode(), r.getTid()},
                epochs_};
    }
    Surrender surrender(wire::PageSurrender::Reader s) {
        return {run_, checked(s.getLeft(), Presence::exclusive), s.getRound(), epochs_,
                contents(s.getContents())};
    }
    // Their order and bounds are checked where the request is known.
    Touched touched(wire::PageTouched::Reader t) {
        Touched m{run_, t.getCollect(), t.getPushed(), {}};
        auto spans = t.getSpans();
        if (spans.size() % 2 != 0 || spans.size() > 2 * max_touched_spans) {
            bad_ = "an impossible number of spans";
            return m;
        }
        for (unsigned i = 0; i < spans.size(); i += 2) {
            m.touched.push_back({spans[i], spans[i + 1]});
        }
        return m;
    }
    Push push(wire::PagePush::Reader p) {
        return {run_,
                p.getTo(),
                checked(p.getLeft(), Presence::exclusive),
                checked(p.getGrant(), Presence::exclusive),
                p.getTid(),
                epochs_,
                contents(p.getContents())};
    }

    std::shared_ptr<ReceivedFrame> frame_;
    Body::Reader in_;
    PageRun run_;
    std::vector<Epoch> epochs_;
    const char* bad_ = nullptr;
};

}  // namespace

void encode_pages(FrameBuilder& frame, const Message& message) {
    auto out = frame.session().initPages();
    out.setClock(message.clock);
    std::visit(Encoder{frame, out}, message.body);
}

Result<Message> decode_pages(std::shared_ptr<ReceivedFrame> frame) {
    return Decoder(std::move(frame)).decode();
}

void put_missed(wire::Crossing::Builder crossing, const std::vector<uint64_t>& missed) {
    if (missed.empty()) return;
    auto list = crossing.initMissed(static_cast<unsigned>(missed.size()));
    for (unsigned i = 0; i < missed.size(); i++) list.set(i, missed[i]);
}

std::vector<uint64_t> missed_of(wire::Crossing::Reader crossing) {
    std::vector<uint64_t> missed;
    for (uint64_t m : crossing.getMissed()) missed.push_back(m);
    return missed;
}

std::optional<ObjectId> object_of(const Message& message) {
    return std::visit(
        [](const auto& body) -> std::optional<ObjectId> {
            if constexpr (requires { body.run; }) return body.run.object;
            return std::nullopt;
        },
        message.body);
}

// Code of another acceptor looks like home's code to this one: a thread goes there by way of home.
CodeClass class_at(NodeId reader, const Mapping& m) {
    bool elsewhere = m.code == CodeClass::remote && reader != directory_node;
    return elsewhere && m.code_node != reader ? CodeClass::home : m.code;
}

Mapping mapping_from_wire(wire::MappingView::Reader view) {
    Mapping m;
    m.range = {{view.getBegin()}, {view.getEnd()}};
    m.prot = static_cast<int>(view.getProt());
    m.shared = view.getShared();
    m.may_write = view.getMayWrite();
    m.file = view.getFile();
    m.object = view.getObject();
    m.object_page = view.getObjectPage();
    m.birth = view.getBirth();
    m.code = static_cast<CodeClass>(view.getCodeClass());
    m.grows_down = view.getGrowsDown();
    m.main_stack = view.getMainStack();
    m.anchored = view.getAnchored();
    m.sealed = view.getSealed();
    m.follows = view.getFollows();
    m.source = view.getSource();
    m.content_offset = view.getSourceOffset();
    if (auto digest = digest_of_bytes(view.getContent())) {
        m.digest = std::make_shared<const ContentDigest>(*digest);
    }
    return m;
}

void mapping_to_wire(const Mapping& m, uint64_t object_pages, NodeId reader,
                     wire::MappingView::Builder view) {
    view.setBegin(m.range.begin.value);
    view.setEnd(m.range.end.value);
    view.setProt(static_cast<uint32_t>(m.prot));
    view.setShared(m.shared);
    view.setMayWrite(m.may_write);
    view.setFile(m.file);
    view.setObject(m.object);
    view.setObjectPage(m.object_page);
    view.setBirth(m.birth);
    view.setCodeClass(static_cast<uint8_t>(class_at(reader, m)));
    view.setObjectPages(object_pages);
    view.setGrowsDown(m.grows_down);
    view.setMainStack(m.main_stack);
    view.setAnchored(m.anchored);
    view.setSealed(m.sealed);
    view.setFollows(m.follows != 0);
    view.setSource(m.source);
    if (m.source != 0 || m.digest) view.setSourceOffset(m.content_offset);
    if (m.digest) {
        view.setContent(kj::ArrayPtr<const uint8_t>(m.digest->data(), m.digest->size()));
    }
}

}  // namespace gpr
