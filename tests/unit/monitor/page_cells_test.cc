#include "monitor/control/page_cells.h"

#include <doctest/doctest.h>

namespace gpr {

TEST_CASE("a mapping has no more cells than pages, and each begins where it is said to") {
    CHECK(cell_count(1, 64) == 1);
    CHECK(cell_count(64, 64) == 64);
    CHECK(cell_count(1 << 20, 64) == 64);
    for (const uint64_t pages : {1, 2, 63, 64, 65, 100, 1000, 4097}) {
        const uint64_t cells = cell_count(pages, 64);
        CHECK(cell_of(0, pages, cells) == 0);
        CHECK(cell_of(pages - 1, pages, cells) == cells - 1);
        for (uint64_t cell = 0; cell < cells; cell++) {
            const uint64_t first = (cell * pages + cells - 1) / cells;
            CHECK(cell_of(first, pages, cells) == cell);
            if (first > 0) CHECK(cell_of(first - 1, pages, cells) == cell - 1);
        }
    }
}

}  // namespace gpr
