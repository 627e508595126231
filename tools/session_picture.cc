#include "tools/session_picture.h"

#include <algorithm>

namespace gpr {

namespace {

using nlohmann::json;

constexpr int share_of_time = 20;  // of which the session spends one on answers
constexpr std::chrono::seconds most_pause{30};
constexpr std::chrono::seconds patience{3};
constexpr uint64_t cells_of_mapping = 64;
constexpr size_t most_mappings = 400, most_pages = 40, most_places = 40;
constexpr size_t most_names = 4096;

std::string text_of(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

bool has_moved(const json& mapping) {
    return !object_at(object_at(mapping, "cells"), "moved").empty();
}

// Those of which pages have moved go first where there is no room for all; in their old order.
json as_many_as_fit(const json& mappings) {
    json list = json::array();
    size_t room = most_mappings;
    std::vector<bool> is_shown;
    for (const bool moved : {true, false}) {
        size_t index = 0;
        for (const json& each : mappings) {
            if (is_shown.size() <= index) is_shown.push_back(false);
            if (has_moved(each) == moved && room > 0) {
                is_shown[index] = true;
                room--;
            }
            index++;
        }
    }
    size_t index = 0;
    for (const json& each : mappings) {
        if (is_shown[index++]) list.push_back(each);
    }
    return list;
}

void keep_first(json& list, size_t most) {
    if (list.size() > most) list.erase(list.begin() + static_cast<ptrdiff_t>(most), list.end());
}

int64_t milliseconds(AskingPace::Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

void AskingPace::answered(Clock::time_point began, Clock::time_point now) {
    const auto pause = std::min<Clock::duration>(share_of_time * (now - began), most_pause);
    due_ = std::max(began + least_, now + pause);
}

bool SessionPicture::look() {
    using Clock = AskingPace::Clock;
    const auto began = Clock::now();
    if (!board_.is_watched()) {
        if (!idle_pace_.is_due(began)) return true;
        idle_pace_.not_answered(began);
        return session_.client.is_there();
    }
    if (now_pace_.is_due(began)) {
        auto now = ask_now();
        if (!now && !session_.client.is_there()) return false;
        const auto answered = Clock::now();
        if (!now) {
            now_pace_.not_answered(answered);
            board_.put_error(text_of(now.error().message()));
            return true;
        }
        now_pace_.answered(began, answered);
        (*now)["at_ms"] = milliseconds(answered);
        board_.put_now(text_of(*now));
    }
    const auto pid = memory_pace_.is_due(began) ? board_.next_process() : std::nullopt;
    if (!pid) return true;
    const auto asked = Clock::now();
    auto memory = ask_memory(*pid);
    if (memory) {
        memory_pace_.answered(asked, Clock::now());
    } else {
        memory_pace_.not_answered(Clock::now());
    }
    if (!memory) memory = json{{"error", memory.error().message()}};
    (*memory)["pid"] = *pid;
    (*memory)["at_ms"] = milliseconds(Clock::now());
    board_.put_memory(*pid, text_of(*memory));
    return true;
}

Result<json> SessionPicture::ask_now() const {
    const ControlClient& client = session_.client;
    GPR_TRY(json about, client.ask({{"want", "session"}}, patience));
    GPR_TRY(json statistics, client.ask({{"want", "statistics"}}, patience));
    GPR_TRY(json threads, client.ask({{"want", "threads"}}, patience));
    statistics.erase("words");
    return json{{"session", std::move(about)},
                {"statistics", std::move(statistics)},
                {"threads", std::move(threads)}};
}

// Which pages are resident is not asked: that takes the longer the more memory there is.
Result<json> SessionPicture::ask_memory(pid_t pid) {
    const ControlClient& client = session_.client;
    const json about{
        {"want", "mappings"}, {"pid", pid}, {"resident", false}, {"cells", cells_of_mapping}};
    GPR_TRY(json mapped, client.ask(about, patience));
    GPR_TRY(json moved, client.ask({{"want", "pages"}, {"pid", pid}}, patience));
    GPR_TRY(json crossed, client.ask({{"want", "crossings"}, {"pid", pid}}, patience));
    for (const auto& [answer, key] : {std::pair(&mapped, "mappings"), std::pair(&moved, "pages"),
                                      std::pair(&crossed, "crossings")}) {
        if (!is_list_of_objects(object_at(*answer, key))) {
            return fail("the session's answer is not understood");
        }
    }
    const json& mappings = mapped["mappings"];
    know_names(pid, mappings);
    keep_first(moved["pages"], most_pages);
    name_pages(moved["pages"], std::max<uint64_t>(1, word_at(mapped, "page_size")));
    keep_first(crossed["crossings"], most_places);
    for (json& each : crossed["crossings"]) {
        for (const char* key : {"there", "here"}) each[key] = code_at(word_at(each, key));
    }
    const json count = mappings.size();
    return json{{"name", text_at(mapped, "name")},
                {"page_size", word_at(mapped, "page_size")},
                {"mappings_count", count},
                {"mappings", as_many_as_fit(mappings)},
                {"pages", std::move(moved["pages"])},
                {"crossings", std::move(crossed["crossings"])}};
}

// Symbols are found by what is mapped where; cells and traffic change all the time.
void SessionPicture::know_names(pid_t pid, const json& mappings) {
    json places = json::array();
    for (const json& each : mappings) {
        json place = json::object();
        for (const char* key : {"begin", "end", "protection", "offset", "file"}) {
            place[key] = object_at(each, key);
        }
        places.push_back(std::move(place));
    }
    if (names_of_ == pid && names_.mappings == places && names_.variables.size() < most_names &&
        names_.code.size() < most_names) {
        return;
    }
    names_of_ = pid;
    names_ = {std::move(places), std::nullopt, {}, {}};
    if (auto symbols = ProcessSymbols::of(names_.mappings)) names_.symbols = std::move(*symbols);
}

json SessionPicture::code_at(uint64_t address) {
    const auto known = names_.code.find(address);
    if (known != names_.code.end()) return known->second;
    const CallFrame frame = names_.symbols ? names_.symbols->code_at(address, false) : CallFrame();
    return names_.code[address] = {{"address", address},
                                   {"symbol", frame.symbol},
                                   {"file", frame.file},
                                   {"source", frame.source}};
}

void SessionPicture::name_pages(json& pages, uint64_t page_bytes) {
    for (json& page : pages) {
        const uint64_t at = word_at(page, "address");
        const auto known = names_.variables.find(at);
        if (known == names_.variables.end() && names_.symbols) {
            names_.variables[at] = names_.symbols->variables_in({{at}, {at + page_bytes}});
        }
        page["mapping"] = mapping_at(names_.mappings, at);
        page["variables"] = names_.variables[at];
    }
}

}  // namespace gpr
