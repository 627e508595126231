#include "base/suggest.h"

#include <algorithm>
#include <numeric>

namespace gpr {
namespace {

// Levenshtein distance: the fewest insertions, deletions and replacements from one to the other.
size_t edit_distance(std::string_view from, std::string_view to) {
    std::vector<size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= from.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= to.size(); ++j) {
            const size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    return row[to.size()];
}

}  // namespace

std::string nearest_word(std::string_view typed, const std::vector<std::string_view>& known) {
    // Short words need a closer match: at distance 2 all words of three letters are similar.
    size_t best = typed.size() <= 3 ? 2 : 3;
    std::string nearest;
    for (const std::string_view word : known) {
        const size_t distance = edit_distance(typed, word);
        if (distance < best) {
            best = distance;
            nearest = word;
        }
    }
    return nearest;
}

}  // namespace gpr
