// The page of `gpr view` over HTTP, on the loopback: files that are part of the command, and what
// a ViewBoard has. Whoever does not know the token in the address gets nothing.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "tools/view_address.h"
#include "tools/view_board.h"
#include "transport/http_server.h"

namespace gpr {

class ViewServer {
public:
    // Serves in a thread of its own, which has the signal mask of this one. The board must outlive
    // it.
    static Result<std::unique_ptr<ViewServer>> listen(ViewAddress address, ViewBoard& board);
    ~ViewServer();
    ViewServer(const ViewServer&) = delete;
    ViewServer& operator=(const ViewServer&) = delete;

    // With the token.
    [[nodiscard]] std::string url() const;

private:
    ViewServer(HttpServer http, ViewAddress address, std::string token, ViewBoard& board);
    void serve();
    [[nodiscard]] HttpAnswer answer(const HttpRequest& request) const;
    [[nodiscard]] HttpAnswer answer_to_viewer(const HttpRequest& request) const;

    HttpServer http_;
    ViewAddress address_;
    std::string token_;
    ViewBoard& board_;
    Fd over_;  // an eventfd: its thread is to end
    std::thread thread_;
};

}  // namespace gpr
