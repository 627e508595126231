#include "transport/greeting_messages.h"

#include <algorithm>
#include <cstring>

#include "transport/frame_encoder.h"
#include "transport/frame_receiver.h"
#include "transport/texts.h"

namespace gpr {
namespace {

template <class From>
auto set_greeting(const From& from, auto to) {
    to.setProtocolVersion(from.version);
    to.setSoftware(from.software);
    to.setSessionId(from.session_id);
    to.setNodeId(from.node_id);
    write_host(from.host, to.initHost());
}

template <class To>
To read_greeting(auto from) {
    To to;
    to.version = from.getProtocolVersion();
    to.software = printable(from.getSoftware().cStr());
    to.session_id = printable(from.getSessionId().cStr());
    to.node_id = from.getNodeId();
    to.host = read_host(from.getHost());
    return to;
}

void write_paths(const std::vector<RemotePath>& paths, wire::Hello::Builder to) {
    auto list = to.initPaths(static_cast<unsigned>(paths.size()));
    for (unsigned i = 0; i < paths.size(); i++) {
        list[i].setGlob(paths[i].glob);
        list[i].setTarget(paths[i].target);
        list[i].setWhenMissing(paths[i].when_missing);
        list[i].setStandby(paths[i].standby);
    }
}

constexpr size_t most_sessions = 1024;
// Keeps a welcome with sessions within the size of a message between an acceptor's processes.
constexpr size_t most_session_bytes = 100'000;

void write_program(const ProgramDescription& program, wire::Program::Builder to) {
    to.setName(program.name);
    to.setUser(program.user);
    to.setPid(program.pid);
}

ProgramDescription read_program(wire::Program::Reader from) {
    return {printable(from.getName().cStr()), printable(from.getUser().cStr()), from.getPid()};
}

void write_session(const SessionDescription& session, wire::Session::Builder to) {
    to.setId(session.id);
    to.setHost(session.host);
    to.setPeer(session.peer);
    write_program(session.program, to.initProgram());
    to.setSince(session.since);
    to.setCpuNs(session.cpu_ns);
    to.setThreads(session.threads);
    to.setBytesIn(session.bytes_in);
    to.setBytesOut(session.bytes_out);
    to.setArrivals(session.arrivals);
    to.setFaults(session.faults);
    to.setCalls(session.calls);
    write_texts(session.devices, to.initDevices(static_cast<unsigned>(session.devices.size())));
}

size_t size_of(const SessionDescription& session) {
    size_t bytes = sizeof session + session.id.size() + session.host.size() + session.peer.size() +
                   session.program.name.size() + session.program.user.size();
    for (const std::string& device : session.devices) bytes += device.size() + sizeof(uint64_t);
    return bytes;
}

// How many sessions there is room for, from the first one on.
size_t how_many_fit(const std::vector<SessionDescription>& sessions) {
    size_t fit = 0, bytes = 0;
    while (fit < std::min(sessions.size(), most_sessions)) {
        bytes += size_of(sessions[fit]);
        if (bytes > most_session_bytes) break;
        fit++;
    }
    return fit;
}

SessionDescription read_session(wire::Session::Reader from) {
    SessionDescription session;
    session.id = printable(from.getId().cStr());
    session.host = printable(from.getHost().cStr());
    session.peer = printable(from.getPeer().cStr());
    session.program = read_program(from.getProgram());
    session.since = from.getSince();
    session.cpu_ns = from.getCpuNs();
    session.threads = from.getThreads();
    session.bytes_in = from.getBytesIn();
    session.bytes_out = from.getBytesOut();
    for (auto device : from.getDevices()) session.devices.push_back(printable(device.cStr()));
    session.arrivals = from.getArrivals();
    session.faults = from.getFaults();
    session.calls = from.getCalls();
    return session;
}

void write_links(const std::vector<RootLink>& links, wire::Hello::Builder to) {
    auto list = to.initRootLinks(static_cast<unsigned>(links.size()));
    for (unsigned i = 0; i < links.size(); i++) {
        list[i].setName(links[i].name);
        list[i].setTarget(links[i].target);
    }
}

void write_calls(const std::vector<RemoteCall>& calls, wire::Hello::Builder to) {
    auto list = to.initCalls(static_cast<unsigned>(calls.size()));
    for (unsigned i = 0; i < calls.size(); i++) {
        list[i].setNumber(calls[i].number);
        list[i].setFamily(calls[i].family);
    }
}

std::vector<RemoteCall> read_calls(wire::Hello::Reader from) {
    std::vector<RemoteCall> calls;
    for (auto call : from.getCalls()) calls.push_back({call.getNumber(), call.getFamily()});
    return calls;
}

std::vector<RootLink> read_links(wire::Hello::Reader from) {
    std::vector<RootLink> links;
    for (auto link : from.getRootLinks()) {
        links.push_back({link.getName().cStr(), link.getTarget().cStr()});
    }
    return links;
}

std::vector<RemotePath> read_paths(wire::Hello::Reader from) {
    std::vector<RemotePath> paths;
    for (auto path : from.getPaths()) {
        paths.push_back({path.getGlob().cStr(), path.getTarget().cStr(), path.getWhenMissing(),
                         path.getStandby().cStr()});
    }
    return paths;
}

}  // namespace

void write_hello(const Hello& hello, wire::Hello::Builder to) {
    set_greeting(hello, to);
    write_paths(hello.paths, to);
    write_links(hello.root_links, to);
    write_calls(hello.calls, to);
    to.setVdso({reinterpret_cast<const kj::byte*>(hello.vdso.data()), hello.vdso.size()});
    auto devices = to.initDevices();
    devices.setCount(hello.devices.count);
    const auto& names = hello.devices.names;
    write_texts(names, devices.initNames(static_cast<unsigned>(names.size())));
    to.setWantInventory(hello.want_inventory);
    to.setOnlyLooks(hello.only_looks);
    to.setWantSessions(hello.want_sessions);
    write_program(hello.program, to.initProgram());
    to.setWatchesFutexes(hello.watches_futexes);
}

Hello read_hello(wire::Hello::Reader from) {
    auto hello = read_greeting<Hello>(from);
    hello.paths = read_paths(from);
    hello.root_links = read_links(from);
    hello.calls = read_calls(from);
    const auto vdso = std::as_bytes(std::span(from.getVdso().begin(), from.getVdso().size()));
    hello.vdso.assign(vdso.begin(), vdso.end());
    hello.devices = {from.getDevices().getCount(), read_texts(from.getDevices().getNames())};
    hello.want_inventory = from.getWantInventory();
    hello.only_looks = from.getOnlyLooks();
    hello.want_sessions = from.getWantSessions();
    hello.program = read_program(from.getProgram());
    hello.watches_futexes = from.getWatchesFutexes();
    return hello;
}

void write_welcome(const Welcome& welcome, wire::Welcome::Builder to) {
    set_greeting(welcome, to);
    const auto devices = std::min(welcome.devices.size(), most_devices);
    write_devices(welcome.devices, to.initDevices(static_cast<unsigned>(devices)));
    write_inventory(welcome.inventory, to.initInventory());
    to.setKeepsContents(welcome.keeps_contents);
    const auto& standby = welcome.standby;
    write_texts(standby, to.initStandby(static_cast<unsigned>(standby.size())));
    const size_t sessions = how_many_fit(welcome.sessions);
    auto list = to.initSessions(static_cast<unsigned>(sessions));
    for (unsigned i = 0; i < sessions; i++) write_session(welcome.sessions[i], list[i]);
}

Welcome read_welcome(wire::Welcome::Reader from) {
    auto welcome = read_greeting<Welcome>(from);
    welcome.devices = read_devices(from.getDevices());
    welcome.inventory = read_inventory(from.getInventory());
    welcome.standby = read_texts(from.getStandby());
    welcome.keeps_contents = from.getKeepsContents();
    for (const auto& session : from.getSessions()) {
        if (welcome.sessions.size() < most_sessions) {
            welcome.sessions.push_back(read_session(session));
        }
    }
    return welcome;
}

Result<std::vector<std::byte>> frame_bytes(FrameBuilder& frame) {
    FrameEncoder encoder;
    GPR_CHECK(encoder.start(frame, Priority::urgent));
    encoder.next();
    std::vector<std::byte> bytes;
    for (const iovec& part : encoder.parts()) {
        const auto* data = static_cast<const std::byte*>(part.iov_base);
        bytes.insert(bytes.end(), data, data + part.iov_len);
    }
    return bytes;
}

Result<ReceivedFrame> frame_of(std::span<const std::byte> bytes) {
    FrameReceiver receiver(FrameLimits{});
    while (!bytes.empty()) {
        const auto space = receiver.space();
        const size_t part = std::min(space.size(), bytes.size());
        std::memcpy(space.data(), bytes.data(), part);
        receiver.received(part);
        bytes = bytes.subspan(part);
        GPR_TRY(auto frame, receiver.next());
        if (frame) return std::move(*frame);
    }
    return fail(EBADMSG, "half a message");
}

}  // namespace gpr
