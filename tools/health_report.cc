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

bool names(const HostDescription& host, const Feature& feature) {
    return std::find(host.features.begin(), host.features.end(), feature.name) !=
           host.features.end();
}

}  // namespace

std::string features_report(const KernelFeatures& features) {
    std::vector<std::vector<std::string>> rows = {{"FEATURE", "HERE", "NEEDED FOR", ""}};
    for (const Feature* feature : features.all()) {
        rows.push_back({std::string(feature->name), state_of(*feature),
                        std::string(feature->needed_for), remark_on(*feature)});
    }
    std::string text = format_table(rows);
    const size_t missing = features.lacking().size();
    text += missing == 0 ? "\nNothing that gpr requires is missing.\n"
                         : fmt::format(
                               "\n{} required feature{} missing; the last column says what"
                               " to do.\n",
                               missing, missing == 1 ? " is" : "s are");
    return text;
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
