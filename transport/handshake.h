// From a connected socket to a peer that has proven its token and told what it is. Blocking, with
// a deadline: it happens before the session's loop starts. Nothing a peer sends can make it take
// longer, use more than a few hundred KiB, or do anything but return an error.
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

inline constexpr uint32_t protocol_version = 12;
inline constexpr std::chrono::milliseconds handshake_timeout{5000};
// What an acceptor may take longer to look at its devices before it welcomes who asks for them.
inline constexpr std::chrono::milliseconds inventory_timeout{10000};

// A part of the file tree that is to be the acceptor's: what matches `glob`, and all below it.
struct RemotePath {
    std::string glob;           // as the program sees it, absolute
    std::string target;         // what the acceptor shows there; empty: its own of that name
    bool when_missing = false;  // only what the initiator does not have
    std::string standby;        // the profile that has it, if that is only ready to be used
    bool operator==(const RemotePath&) const = default;
};

// A link in the initiator's root folder, such as /lib to usr/lib: files have two names there.
struct RootLink {
    std::string name;    // without the slash
    std::string target;  // absolute
    bool operator==(const RootLink&) const = default;
};

struct Hello {
    uint32_t version = protocol_version;
    std::string software;
    std::string session_id;
    uint32_t node_id = 1;
    HostDescription host;
    std::vector<RemotePath> paths;
    std::vector<RootLink> root_links;
    std::vector<std::byte> vdso;  // the image that programs see there
    DeviceRequest devices;
    std::vector<RemoteCall> calls;  // that are made at the acceptor
    bool want_inventory = false;    // and then no session
    bool only_looks = false;        // the welcome is all that it wants
};
struct Welcome {
    uint32_t version = protocol_version;
    std::string software;
    std::string session_id;  // empty: the initiator's
    uint32_t node_id = 0;    // 0: what the initiator said
    HostDescription host;
    std::vector<Device> devices;       // given to the session
    Inventory inventory;               // where it was wanted
    std::vector<std::string> standby;  // profiles of the Hello's that this host has something for
};

// A proven peer, not yet bound to a loop.
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
    std::unique_ptr<FrameReceiver> receiver;  // may hold frames that came right behind
};
using EstablishedInitiator = Established<Hello>;   // what an acceptor gets
using EstablishedAcceptor = Established<Welcome>;  // what an initiator gets

struct AcceptOptions {
    std::string peer_name;     // from Listener::accept
    bool allow_plain = false;  // unix sockets, and TCP where the administrator said so
    // Called once the peer has proven its token: it may add to the welcome, or take its time. An
    // error is told to the peer.
    std::function<Result<>(const Hello&, Welcome&)> admit = {};
};

// Acceptor side, on an accepted socket. TLS is recognised by its first byte.
Result<EstablishedInitiator> accept_session(Fd socket, const TokenFile& tokens, const Welcome& ours,
                                            const AcceptOptions& options, Deadline deadline);

// Initiator side: connects, proves, greets.
Result<EstablishedAcceptor> connect_session(const Endpoint& endpoint, const Token& token,
                                            const Hello& ours, Deadline deadline);
// The same on a socket that is already connected.
Result<EstablishedAcceptor> greet_acceptor(Fd socket, const Endpoint& endpoint, const Token& token,
                                           const Hello& ours, Deadline deadline);

std::string new_session_id();

// Binds the link to the loop that will carry it. The loop must outlive the link.
template <class PeerMessage>
std::unique_ptr<Link> make_link(Loop& loop, Established<PeerMessage> established);

}  // namespace gpr
