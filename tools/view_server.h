// The page of `gpr view` over HTTP, on the loopback: files that are part of the command, and what
// a ViewBoard has. Whoever does not know the token in the address gets nothing.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "tools/view_address.h"
#include "tools/view_board.h"

namespace httplib {
class Server;
struct Request;
struct Response;
}  // namespace httplib

namespace gpr {

class ViewServer {
public:
    // Serves in threads of its own, which have the signal mask of this one. The board must outlive
    // it.
    static Result<std::unique_ptr<ViewServer>> listen(ViewAddress address, ViewBoard& board);
    ~ViewServer();
    ViewServer(const ViewServer&) = delete;
    ViewServer& operator=(const ViewServer&) = delete;

    // With the token.
    [[nodiscard]] std::string url() const;

private:
    ViewServer(ViewAddress address, std::string token, ViewBoard& board);
    void set_up();
    // The status of a refusal, or 0.
    [[nodiscard]] int refusal(const httplib::Request& request) const;
    void answer(const httplib::Request& request, httplib::Response& response) const;

    ViewAddress address_;
    std::string token_;
    ViewBoard& board_;
    std::unique_ptr<httplib::Server> server_;
    std::atomic<bool> over_ = false;  // its thread serves no more
    std::thread thread_;
};

}  // namespace gpr
