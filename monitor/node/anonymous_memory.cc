#include "monitor/node/anonymous_memory.h"

namespace gpr {

Task<Result<void>> replace_by_anonymous(Fragment& fragment, Mapping& m, const char* what) {
    const int64_t made = co_await map_anonymous(fragment.executor(), m.range, m.prot);
    auto mapped = from_kernel(made, what);
    if (!mapped) co_return tl::make_unexpected(mapped.error());
    auto registered = fragment.register_range(m.range);
    if (!registered) co_return registered;
    m.backing = Backing::anonymous;
    m.registered = true;
    co_return Result<void>{};
}

}  // namespace gpr
