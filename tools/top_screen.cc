#include "tools/top_screen.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/address.h"
#include "tools/acceptor_greeting.h"
#include "tools/sessions.h"
#include "tools/table.h"

namespace gpr {

namespace {

using Clock = std::chrono::steady_clock;

// How much time has passed since the last look.
class Pace {
public:
    double step() {
        const auto now = Clock::now();
        const double seconds = std::chrono::duration<double>(now - last_).count();
        last_ = now;
        return std::max(1e-3, seconds);
    }

private:
    Clock::time_point last_ = Clock::now();
};

// What a thread, or a session at an acceptor, has cost: so far, or a second.
struct Costs {
    double cpu = 0, crossings = 0, faults = 0, calls = 0, bytes = 0;

    // A count that is less than before is of another one with the same number.
    [[nodiscard]] Costs since(const Costs& before, double seconds) const {
        const auto rate = [&](double Costs::*of) {
            return std::max(0.0, this->*of - before.*of) / seconds;
        };
        return {rate(&Costs::cpu), rate(&Costs::crossings), rate(&Costs::faults),
                rate(&Costs::calls), rate(&Costs::bytes)};
    }
    [[nodiscard]] double weight() const { return 100 * cpu + crossings + faults + calls; }
    void add_to(std::vector<std::string>& row) const {
        for (const double each : {100 * cpu, crossings, faults, calls}) {
            row.push_back(fmt::format("{:.0f}", each));
        }
        row.push_back(fmt::format("{:.1f}", bytes / 1e6));
    }
    void add_to(nlohmann::json& object) const {
        object["cpu"] = cpu;
        object["crossings_per_s"] = crossings;
        object["faults_per_s"] = faults;
        object["calls_per_s"] = calls;
        object["bytes_per_s"] = bytes;
    }
};

double sum_at(const nlohmann::json& thread, const char* key, const char* one, const char* two) {
    const nlohmann::json& object = object_at(thread, key);
    return number_at(object, one) + number_at(object, two);
}

struct ThreadNow {
    nlohmann::json about;
    Costs rates;
};

// One session, from one picture to the next.
class WatchedSession {
public:
    explicit WatchedSession(ListedSession session) : session_(std::move(session)) {}

    [[nodiscard]] pid_t pid() const { return session_.client.pid(); }

    // False: it has ended.
    Result<bool> look() {
        auto about = session_.client.ask({{"want", "session"}});
        const auto threads = session_.client.ask({{"want", "threads"}});
        if (!about || !threads) {
            if (!session_.client.is_there()) return false;
            return fail(fmt::format("session {}: {}", pid(),
                                    (about ? threads.error() : about.error()).message()));
        }
        const double seconds = pace_.step();
        const double moved = number_at(*about, "bytes_moved");
        moved_ = (moved - number_at(session_.about, "bytes_moved")) / seconds;
        session_.about = std::move(*about);
        const auto before = std::exchange(costs_, {});
        now_.clear();
        for (const nlohmann::json& each : object_at(*threads, "threads")) {
            const std::pair key{number_at(each, "pid"), number_at(each, "tid")};
            const Costs so_far = costs_[key] = costs_of(each);
            const auto old = before.find(key);
            const Costs then = old == before.end() ? so_far : old->second;
            now_.push_back({each, so_far.since(then, seconds)});
        }
        std::ranges::stable_sort(now_, std::ranges::greater{},
                                 [](const ThreadNow& each) { return each.rates.weight(); });
        return true;
    }

    [[nodiscard]] std::string head() const {
        const nlohmann::json& threads = object_at(session_.about, "threads");
        return fmt::format("{} {}: {} threads at home, {} away; {}/s over the links\n", pid(),
                           text_at(session_.about, "program"), number_at(threads, "home"),
                           number_at(threads, "away"), megabytes_text(moved_));
    }
    void add_rows(std::vector<std::vector<std::string>>& rows) const {
        for (const ThreadNow& each : now_) {
            std::vector<std::string> row{fmt::format("{}", number_at(each.about, "pid")),
                                         fmt::format("{}", number_at(each.about, "tid")),
                                         text_at(each.about, "where")};
            each.rates.add_to(row);
            for (const char* key : {"name", "state", "waits_for"}) {
                row.push_back(text_at(each.about, key));
            }
            rows.push_back(std::move(row));
        }
    }
    [[nodiscard]] nlohmann::json json() const {
        nlohmann::json list = nlohmann::json::array();
        for (const ThreadNow& each : now_) {
            nlohmann::json thread;
            for (const char* key : {"pid", "tid", "name", "where", "state", "waits_for"}) {
                thread[key] = object_at(each.about, key);
            }
            each.rates.add_to(thread);
            list.push_back(std::move(thread));
        }
        return {{"session", pid()}, {"bytes_per_s", moved_}, {"threads", list}};
    }

private:
    static Costs costs_of(const nlohmann::json& thread) {
        return {sum_at(thread, "cpu_s", "home", "away"), sum_at(thread, "crossings", "out", "back"),
                sum_at(thread, "faults", "home", "away"), number_at(thread, "calls_home"),
                sum_at(thread, "pages_in", "home", "away") * static_cast<double>(page_size)};
    }

    ListedSession session_;
    Pace pace_;
    double moved_ = 0;  // bytes a second
    std::map<std::pair<double, double>, Costs> costs_;
    std::vector<ThreadNow> now_;
};

class SessionsScreen : public TopScreen {
public:
    SessionsScreen(pid_t pid, bool everybody) : pid_(pid), everybody_(everybody) {}

    Result<bool> look() override {
        std::optional<Error> mute;  // of a session that is there and does not answer
        std::erase_if(sessions_, [&](WatchedSession& each) { return !is_seen(each, mute); });
        if (pid_ == 0) {
            add_new(mute);
        } else if (!has_begun_) {
            GPR_TRY(ListedSession found, session_with(pid_));
            WatchedSession session(std::move(found));
            if (is_seen(session, mute)) sessions_.push_back(std::move(session));
        }
        if (mute && sessions_.empty()) return tl::make_unexpected(*mute);
        if (!has_begun_ && sessions_.empty()) {
            return fail("there are no sessions of this user here; 'gpr exec' starts one");
        }
        has_begun_ = true;
        return !sessions_.empty();
    }

    [[nodiscard]] std::string picture() const override {
        std::string heads;
        std::vector<std::vector<std::string>> rows{{"PID", "TID", "NODE", "CPU %", "CROSS/S",
                                                    "FAULTS/S", "CALLS/S", "MB/S", "NAME", "STATE",
                                                    "WAITS FOR"}};
        for (const WatchedSession& each : sessions_) {
            heads += each.head();
            each.add_rows(rows);
        }
        return heads + "\n" + format_table(rows);
    }

    [[nodiscard]] nlohmann::json json() const override {
        nlohmann::json list = nlohmann::json::array();
        for (const WatchedSession& each : sessions_) list.push_back(each.json());
        return {{"version", 1}, {"sessions", list}};
    }

private:
    static bool is_seen(WatchedSession& session, std::optional<Error>& mute) {
        const auto seen = session.look();
        if (!seen) mute = seen.error();
        return seen && *seen;
    }

    void add_new(std::optional<Error>& mute) {
        const auto note = [&](const Error& error) { mute = error; };
        for (ListedSession& each : list_sessions(everybody_, note)) {
            const pid_t pid = each.client.pid();
            if (std::ranges::find(sessions_, pid, &WatchedSession::pid) != sessions_.end())
                continue;
            WatchedSession session(std::move(each));
            if (is_seen(session, mute)) sessions_.push_back(std::move(session));
        }
    }

    pid_t pid_;
    bool everybody_;
    bool has_begun_ = false;
    std::vector<WatchedSession> sessions_;
};

class AcceptorScreen : public TopScreen {
public:
    AcceptorScreen(std::string address, Settings settings)
        : address_(std::move(address)), settings_(std::move(settings)) {}

    Result<bool> look() override {
        Hello hello;
        hello.only_looks = hello.want_sessions = true;
        GPR_TRY(auto peer, greet_acceptor_at(address_, settings_, std::move(hello)));
        const double seconds = pace_.step();
        name_ = peer.peer_name;
        const auto before = std::exchange(costs_, {});
        now_.clear();
        for (SessionDescription& each : peer.peer.sessions) {
            const Costs so_far = costs_[each.id] = {
                static_cast<double>(each.cpu_ns) / 1e9, static_cast<double>(each.arrivals),
                static_cast<double>(each.faults), static_cast<double>(each.calls),
                static_cast<double>(each.bytes_in + each.bytes_out)};
            const auto old = before.find(each.id);
            const Costs then = old == before.end() ? so_far : old->second;
            now_.emplace_back(std::move(each), so_far.since(then, seconds));
        }
        std::ranges::stable_sort(now_, std::ranges::greater{},
                                 [](const auto& each) { return each.second.weight(); });
        return true;
    }

    [[nodiscard]] std::string picture() const override {
        std::vector<std::vector<std::string>> rows{{"HOST", "USER", "PID", "THREADS", "CPU %",
                                                    "CROSS/S", "FAULTS/S", "CALLS/S", "MB/S",
                                                    "PROGRAM"}};
        for (const auto& [session, rates] : now_) {
            std::vector<std::string> row{session.host, session.program.user,
                                         fmt::format("{}", session.program.pid),
                                         fmt::format("{}", session.threads)};
            rates.add_to(row);
            row.push_back(session.program.name);
            rows.push_back(std::move(row));
        }
        return fmt::format("{}: {} sessions\n\n{}", name_, now_.size(), format_table(rows));
    }

    [[nodiscard]] nlohmann::json json() const override {
        nlohmann::json list = nlohmann::json::array();
        for (const auto& [session, rates] : now_) {
            nlohmann::json one{{"session", session.id},           {"host", session.host},
                               {"user", session.program.user},    {"pid", session.program.pid},
                               {"program", session.program.name}, {"threads", session.threads}};
            rates.add_to(one);
            list.push_back(std::move(one));
        }
        return {{"version", 1}, {"acceptor", name_}, {"sessions", list}};
    }

private:
    std::string address_;
    Settings settings_;
    std::string name_;
    Pace pace_;
    std::map<std::string, Costs> costs_;
    std::vector<std::pair<SessionDescription, Costs>> now_;
};

}  // namespace

std::unique_ptr<TopScreen> screen_of_sessions(pid_t pid, bool everybody) {
    return std::make_unique<SessionsScreen>(pid, everybody);
}

std::unique_ptr<TopScreen> screen_of_acceptor(std::string address, Settings settings) {
    return std::make_unique<AcceptorScreen>(std::move(address), std::move(settings));
}

}  // namespace gpr
