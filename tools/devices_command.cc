// `gpr devices ADDR`: what an acceptor has, and the drivers.
#include <cstdio>
#include <cstdlib>

#include "acceptor/box/exports.h"
#include "acceptor/devices/inventory.h"
#include "monitor/rules/exec_options.h"
#include "tools/acceptor_greeting.h"
#include "tools/command_line.h"
#include "tools/commands.h"
#include "tools/common_settings.h"
#include "tools/devices_report.h"

namespace gpr {

const CommandSpec& devices_spec() {
    static const CommandSpec spec{
        "devices",
        "[OPTION]... ADDR",
        "List the devices of the acceptor at ADDR, what drives them and who has them; with "
        "'local'\n"
        "for ADDR, those of this host.",
        {json_setting, token_file_setting, plain_setting, config_setting},
        false,
        1,
        "What a device is called there is what 'gpr exec --device' wants.\n\n"
        "exit status: 0; 1 the acceptor did not answer, or something it asked failed"};
    return spec;
}

namespace {

struct Answer {
    std::string where;
    Inventory inventory;
};

Result<Answer> ask(const std::string& address, const Settings& settings) {
    if (address == local_acceptor) {
        return Answer{describe_this_host().host_name, take_inventory({"", default_exports()})};
    }
    Hello hello;
    hello.want_inventory = true;
    GPR_TRY(auto peer, greet_acceptor_at(address, settings, std::move(hello)));
    return Answer{peer.peer.host.host_name, std::move(peer.peer.inventory)};
}

// A failed source is reported; the rest of the inventory is printed all the same.
bool has_failed_source(const Inventory& inventory) {
    for (const InventorySource& source : inventory.sources) {
        if (source.state == "failed") return true;
    }
    return false;
}

}  // namespace

int devices_main(const Words& arguments) {
    const auto refuse = [](const Error& error, int status) {
        complain(error.message());
        return status;
    };
    const auto parsed = parse_command(devices_spec(), arguments);
    if (!parsed) return refuse(parsed.error(), exit_usage);
    if (parsed->wants_help) {
        std::fputs(help_text(devices_spec()).c_str(), stdout);
        return 0;
    }
    if (parsed->words.empty()) {
        complain("no acceptor is named; give its address, or 'local' for this host");
        return exit_usage;
    }
    const auto gathered = gather_settings(devices_spec(), parsed->flags,
                                          [](const char* name) { return getenv(name); });
    if (!gathered) return refuse(gathered.error(), exit_usage);
    const auto answer = ask(address_of(parsed->words.front(), *gathered), gathered->settings);
    if (!answer) return refuse(answer.error(), exit_failed);
    const bool json = Settings({parsed->flags}).toggle(json_setting.name);
    const auto text = json ? devices_json(answer->where, answer->inventory)
                           : devices_table(answer->where, answer->inventory);
    std::fputs(text.c_str(), stdout);
    return has_failed_source(answer->inventory) ? exit_failed : 0;
}

}  // namespace gpr
