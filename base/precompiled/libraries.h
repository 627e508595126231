// Precompiled for each folder that names it: headers of libraries that most files need and that
// take long to read. None of our own headers, so that a change to one recompiles only its users.
// Each file still includes what it uses.
#ifndef GPR_LIBRARIES_PCH_H
#define GPR_LIBRARIES_PCH_H

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/user.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#endif
