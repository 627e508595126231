#include "sim_replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <iterator>
#include <map>

#include "mm/directory_log.h"
#include "sim_world.h"

namespace gpr::sim {

namespace {

using namespace directory_event;

std::string describe_all(const Decided& decided) {
    std::vector<std::string> all;
    for (const Decision& decision : decided.decisions) {
        if (const auto* send = std::get_if<SendMessage>(&decision)) {
            all.push_back(fmt::format("to {}: {}", send->to, describe(send->message)));
        } else {
            const auto& done = std::get<CollectDone>(decision);
            all.push_back(fmt::format("collect {} done, {} pages, {} left", done.cookie,
                                      done.collected, done.left_behind));
        }
    }
    return fmt::format("-> {}", fmt::join(all, "; "));
}

struct Describe {
    std::string operator()(const AddObject& e) const {
        return fmt::format("object {} is born at {}", e.object, e.birth);
    }
    std::string operator()(const EraseObject& e) const {
        return fmt::format("object {} is gone", e.object);
    }
    std::string operator()(const directory_event::Drop& e) const {
        return fmt::format("drop {}:{}+{}", e.object, e.first, e.count);
    }
    std::string operator()(const Told& e) const {
        return fmt::format("from {}: {}", e.from, describe(e.message));
    }
    std::string operator()(const Collect& e) const {
        return fmt::format("collect {} of {}:{}+{} {} at {}", e.cookie, e.object, e.first, e.count,
                           e.access == Access::write ? "write" : "read", e.node);
    }
    std::string operator()(const Hold& e) const { return fmt::format("hold {}", e.object); }
    std::string operator()(const HoldAll& e) const {
        return fmt::format("hold {} for all", e.object);
    }
    std::string operator()(const CopyObject& e) const {
        return fmt::format("copy {} to {}", e.from, e.to);
    }
    std::string operator()(const Release& e) const { return fmt::format("release {}", e.object); }
    std::string operator()(const RemoveNode& e) const {
        return fmt::format("node {} is gone", e.node);
    }
    std::string operator()(const Decided& e) const { return describe_all(e); }
};

// When each page was last spoken of.
class Times {
public:
    void note(const DirectoryEvent& event) {
        if (const auto* told = std::get_if<Told>(&event)) {
            now_ = told->now_ns;
            note(told->message);
        } else if (const auto* collect = std::get_if<Collect>(&event)) {
            now_ = collect->now_ns;
        } else if (const auto* release = std::get_if<Release>(&event)) {
            now_ = release->now_ns;
        } else if (const auto* decided = std::get_if<Decided>(&event)) {
            for (const Decision& decision : decided->decisions) {
                if (const auto* send = std::get_if<SendMessage>(&decision)) note(send->message);
            }
        }
        if (first_ == 0) first_ = now_;
    }
    [[nodiscard]] double seconds() const { return static_cast<double>(now_ - first_) / 1e9; }
    [[nodiscard]] double seconds_since(PageKey key) const {
        auto it = last_.find(key);
        return it == last_.end() ? seconds() : static_cast<double>(now_ - it->second) / 1e9;
    }

private:
    void note(const Message& message) {
        std::visit(
            [this](const auto& body) {
                if constexpr (requires { body.run; }) {
                    for (uint32_t i = 0; i < body.run.count; ++i) last_[body.run[i]] = now_;
                }
            },
            message.body);
    }

    uint64_t first_ = 0, now_ = 0;
    std::map<PageKey, uint64_t> last_;
};

std::vector<unsigned> nodes_of(uint16_t bits) {
    std::vector<unsigned> nodes;
    for (unsigned n = 0; n < max_nodes; ++n) {
        if (bits >> n & 1) nodes.push_back(n);
    }
    return nodes;
}

std::string name_of(const Seniority& who) {
    return fmt::format("node {} tid {} age {}", who.node, who.tid, who.age);
}

void print(const PageWait& wait, double seconds) {
    fmt::print("page {}, {} at {}, version {}, last heard of {:.3f} s before:\n",
               to_string(wait.key), wait.holders.exclusive ? "exclusive" : "shared",
               fmt::join(nodes_of(wait.holders.nodes), " and "), version_of(wait.holders.epoch),
               seconds);
    for (const PageWait::Wisher& w : wait.wishers) {
        fmt::print("    {} wishes to {}{}{}{}\n", name_of(w.who),
                   w.access == Access::write ? "write" : "read", w.optional ? ", ahead" : "",
                   w.collect ? ", for a collect" : "", w.held_back ? ", held back" : "");
    }
    if (wait.owing != 0) {
        fmt::print("    node {} has not answered; it was asked for {}\n",
                   fmt::join(nodes_of(wait.owing), " and "), name_of(wait.asked_for));
    }
}

}  // namespace

int replay_file(const std::string& path, bool verbose) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file && bytes.empty()) {
        fmt::print("FAILED: cannot read {}\n", path);
        return 1;
    }
    PageDirectory directory;
    Times times;
    const DirectoryReplay result =
        replay(std::as_bytes(std::span(bytes)), directory, [&](const DirectoryEvent& event) {
            times.note(event);
            if (verbose) {
                fmt::print("{:12.6f} {}\n", times.seconds(), std::visit(Describe{}, event));
            }
        });
    fmt::print("{} segments, {} events, {} decisions in {:.3f} s; seed {}\n", result.segments,
               result.events, result.decisions, times.seconds(), result.seed);
    for (const PageWait& wait : directory.waits()) print(wait, times.seconds_since(wait.key));
    if (result.problem.empty()) {
        fmt::print("passed: the same decisions; {} pages are waited for at the end\n",
                   directory.waits().size());
        return 0;
    }
    fmt::print("FAILED: {}\n", result.problem);
    if (!result.recorded.decisions.empty()) {
        fmt::print("recorded {}\nreplayed {}\n", describe_all(result.recorded),
                   describe_all(result.replayed));
    }
    return 1;
}

}  // namespace gpr::sim
