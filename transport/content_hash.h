// Makes the digest of a content that comes in pieces.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <span>

#include "base/content_digest.h"

namespace gpr {

class ContentHash {
public:
    ContentHash();
    void add(std::span<const std::byte> piece);
    // Afterwards it is of no more use.
    ContentDigest finish();

private:
    struct Free {
        void operator()(EVP_MD_CTX* state) const { EVP_MD_CTX_free(state); }
    };
    std::unique_ptr<EVP_MD_CTX, Free> state_;
};

}  // namespace gpr
