#include "tools/health_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/table.h"

namespace gpr {
namespace {

std::string state_of(const Feature& feature) {
    if (feature.present) return "yes";
    return feature.required ? "MISSING" : "no";
}

std::string remark_on(const Feature& feature) {
    if (feature.present) return feature.detail;
    if (feature.detail.empty()) return std::string(feature.cure);
    return fmt::format("{}; {}", feature.detail, feature.cure);
}

// Missing required features with the same cause: a normal user may lack many for one reason.
struct Problem {
    std::string cause;
    std::vector<const Feature*> features;
};

std::vector<Problem> problems_of(const KernelFeatures& features) {
    std::vector<Problem> problems;
    for (const Feature* feature : features.lacking()) {
        const std::string cause = remark_on(*feature);
        const auto known = std::find_if(problems.begin(), problems.end(),
                                        [&](const Problem& p) { return p.cause == cause; });
        if (known == problems.end()) {
            problems.push_back({cause, {feature}});
        } else {
            known->features.push_back(feature);
        }
    }
    return problems;
}

bool names(const HostDescription& host, const Feature& feature) {
    return std::find(host.features.begin(), host.features.end(), feature.name) !=
           host.features.end();
}

}  // namespace

std::string health_verdict(const KernelFeatures& features, bool is_root) {
    std::string text;
    const std::vector<Problem> problems = problems_of(features);
    for (const Problem& problem : problems) {
        const size_t others = problem.features.size() - 1;
        text += fmt::format("MISSING: {}{}: {}\n", problem.features.front()->name,
                            others == 0 ? "" : fmt::format(", and {} more for that reason", others),
                            problem.cause);
    }
    size_t optional = 0;
    for (const Feature* feature : features.all()) {
        const bool has_told_cause = std::any_of(
            problems.begin(), problems.end(),
            [&](const Problem& problem) { return problem.cause == remark_on(*feature); });
        if (!feature->present && !feature->required && !has_told_cause) ++optional;
    }
    const char* const who = is_root ? "this host" : "you";
    text += problems.empty() ? fmt::format("OK: {} can run gpr.", who)
                             : fmt::format("NOT OK: {} cannot run gpr here yet: {} problem{}.", who,
                                           problems.size(), problems.size() == 1 ? "" : "s");
    text += optional == 0
                ? " Optional: none missing.\n"
                : fmt::format(" Optional: {} missing ('gpr health --all' lists them).\n", optional);
    if (!is_root) {
        text +=
            "An acceptor, also that of '--acceptor local', is started by root; you may use one.\n";
    }
    return text;
}

std::string features_table(const KernelFeatures& features) {
    std::vector<std::vector<std::string>> rows = {{"FEATURE", "HERE", "NEEDED FOR", ""}};
    for (const Feature* feature : features.all()) {
        rows.push_back({std::string(feature->name), state_of(*feature),
                        std::string(feature->needed_for), remark_on(*feature)});
    }
    return format_table(rows) + '\n';
}

nlohmann::json health_json(const KernelFeatures& features) {
    nlohmann::json list = nlohmann::json::array();
    for (const Feature* feature : features.all()) {
        nlohmann::json entry{{"name", feature->name},
                             {"present", feature->present},
                             {"required", feature->required},
                             {"needed_for", feature->needed_for},
                             {"detail", feature->detail}};
        if (!feature->present) entry["cure"] = feature->cure;
        list.push_back(std::move(entry));
    }
    return {{"ok", features.lacking().empty()}, {"features", std::move(list)}};
}

nlohmann::json peer_json(const std::string& name, const HostDescription& host,
                         const KernelFeatures& known) {
    nlohmann::json missing = nlohmann::json::array();
    for (const Feature* feature : lacking_at(host, known)) missing.push_back(feature->name);
    return {{"ok", missing.empty()},
            {"acceptor", name},
            {"host", host.host_name},
            {"kernel", host.kernel_release},
            {"cpu", {{"model", host.cpu.model}, {"count", host.cpu.count}}},
            {"devices", host.devices},
            {"features", host.features},
            {"missing", std::move(missing)}};
}

std::vector<const Feature*> lacking_at(const HostDescription& host, const KernelFeatures& known) {
    std::vector<const Feature*> lacking;
    for (const Feature* feature : known.all()) {
        if (feature->required && !names(host, *feature)) lacking.push_back(feature);
    }
    return lacking;
}

std::string peer_report(const std::string& name, const HostDescription& host,
                        const KernelFeatures& known) {
    std::string devices;
    for (const std::string& device : host.devices) devices += (devices.empty() ? "" : " ") + device;
    std::string without;
    for (const Feature* feature : known.all()) {
        if (names(host, *feature) || feature->required) continue;
        without += fmt::format("{}{}", without.empty() ? "" : ", ", feature->name);
    }
    std::string text = format_table({
        {"acceptor", name},
        {"host name", host.host_name},
        {"kernel", host.kernel_release},
        {"CPU", fmt::format("{} x {}", host.cpu.count, host.cpu.model)},
        {"extended state",
         fmt::format("{} bytes, XCR0 {:#x}", host.cpu.xsave_bytes, host.cpu.xcr0)},
        {"page size", fmt::format("{}", host.page_size)},
        {"open files", fmt::format("{}", host.limits.open_files_hard)},
        {"devices", devices.empty() ? "none" : devices},
        {"does without", without.empty() ? "nothing" : without},
    });
    for (const Feature* feature : lacking_at(host, known)) {
        text += fmt::format("MISSING there: {} ({}); {}\n", feature->name, feature->needed_for,
                            feature->cure);
    }
    return text;
}

}  // namespace gpr
