// Takes a connected socket to a peer that has proven its token and described itself. Blocking, with
// a deadline, because it happens before the session's loop starts. Nothing that a peer sends can
// make it take longer, use more than a few hundred KiB, or do anything but return an error.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/remote_call.h"
#include "base/result.h"
#include "transport/endpoint.h"
#include "transport/host.h"
#include "transport/inventory.h"
#include "transport/link.h"
#include "transport/token.h"

namespace gpr {

class ByteStream;
class FrameReceiver;
class Loop;

inline constexpr uint32_t protocol_version = 19;
inline constexpr std::chrono::milliseconds handshake_timeout{5000};
// How much longer an acceptor may take to look at its devices before it welcomes a peer that asks
// for them.
inline constexpr std::chrono::milliseconds inventory_timeout{10000};

// A part of the file tree that the acceptor provides: what matches `glob`, and everything below it.
struct RemotePath {
    std::string glob;           // as the program sees it, absolute
    std::string target;         // what the acceptor shows there; empty: its own file of that name
    bool when_missing = false;  // only what home does not have
    // The rule's profile, if that is on standby; empty: the rule is in force.
    std::string standby;
    bool operator==(const RemotePath&) const = default;
};

// A link in home's root folder, such as /lib to usr/lib: files have two names there.
struct RootLink {
    std::string name;    // without the slash
    std::string target;  // absolute
    bool operator==(const RootLink&) const = default;
};

// What runs in a session.
struct ProgramDescription {
    std::string name;  // its path
    std::string user;
    int32_t pid = 0;

    bool operator==(const ProgramDescription&) const = default;
};

// One of an acceptor's sessions, as it describes them to a peer that asks.
struct SessionDescription {
    std::string id;    // the initiator's
    std::string host;  // the initiator's
    std::string peer;  // the address that it comes from
    ProgramDescription program;
    int64_t since = 0;                     // seconds since 1970
    uint64_t cpu_ns = 0;                   // used at the acceptor
    uint32_t threads = 0;                  // that are at the acceptor now
    uint64_t bytes_in = 0, bytes_out = 0;  // over the link
    std::vector<std::string> devices;
    uint64_t arrivals = 0;  // of threads, so far
    uint64_t faults = 0;    // of its threads at the acceptor
    uint64_t calls = 0;     // that were forwarded home for them

    bool operator==(const SessionDescription&) const = default;
};

struct Hello {
    uint32_t version = protocol_version;
    std::string software;
    std::string session_id;
    uint32_t node_id = 1;
    HostDescription host;
    std::vector<RemotePath> paths;
    std::vector<RootLink> root_links;
    std::vector<std::byte> vdso;  // the image that programs see at home
    DeviceRequest devices;
    std::vector<RemoteCall> calls;  // that are made at the acceptor
    bool want_inventory = false;    // and no session
    bool only_looks = false;        // wants only the welcome, and no session
    bool want_sessions = false;     // the same, with the acceptor's sessions
    ProgramDescription program;
    // Threads on several nodes may wake each other, so the worker loads CallWatch beforehand.
    bool watches_futexes = false;
};
struct Welcome {
    uint32_t version = protocol_version;
    std::string software;
    std::string session_id;  // empty: as in the Hello
    uint32_t node_id = 0;    // 0: as in the Hello
    HostDescription host;
    std::vector<Device> devices;       // given to the session
    Inventory inventory;               // if it was wanted
    std::vector<std::string> standby;  // the Hello's profiles for which this host has something
    std::vector<SessionDescription> sessions;  // if they were wanted
    bool keeps_contents = false;               // of files, for later sessions
};

// A peer that has proven its token, not bound to a loop yet.
template <class PeerMessage>
struct Established {
    Established();
    Established(Established&&) noexcept;
    Established& operator=(Established&&) noexcept;
    ~Established();

    PeerMessage peer;
    std::string peer_name;  // for messages: "10.0.0.7:7711"
    std::string token_id;
    bool encrypted = false;
    std::unique_ptr<ByteStream> stream;
    std::unique_ptr<FrameReceiver> receiver;  // may hold frames that followed at once
};
using EstablishedInitiator = Established<Hello>;   // what an acceptor gets
using EstablishedAcceptor = Established<Welcome>;  // what home gets

struct AcceptOptions {
    std::string peer_name;     // from Listener::accept
    bool allow_plain = false;  // unix sockets, and TCP if the administrator allows it
    // Called once the peer has proven its token. It may add to the welcome, and may take its time.
    // The peer is told of an error.
    std::function<Result<>(const Hello&, Welcome&)> admit = {};
};

// The acceptor's side, on an accepted socket. TLS is recognised by its first byte.
Result<EstablishedInitiator> accept_session(Fd socket, const TokenFile& tokens, const Welcome& ours,
                                            const AcceptOptions& options, Deadline deadline);

// Home's side: connects, proves the token, and greets.
Result<EstablishedAcceptor> connect_session(const Endpoint& endpoint, const Token& token,
                                            const Hello& ours, Deadline deadline);
// The same on a socket that is already connected.
Result<EstablishedAcceptor> greet_acceptor(Fd socket, const Endpoint& endpoint, const Token& token,
                                           const Hello& ours, Deadline deadline);
// The same, asking what to say when it is to be said. May be called from any thread.
using HelloSource = std::function<Hello()>;
Result<EstablishedAcceptor> greet_acceptor(Fd socket, const Endpoint& endpoint, const Token& token,
                                           const HelloSource& ours, Deadline deadline);

std::string new_session_id();

// Binds the link to the loop that serves it. The loop must outlive the link.
template <class PeerMessage>
std::unique_ptr<Link> make_link(Loop& loop, Established<PeerMessage> established);

}  // namespace gpr
