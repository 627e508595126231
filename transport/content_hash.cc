#include "transport/content_hash.h"

#include "base/result.h"

namespace gpr {

ContentHash::ContentHash() : state_(EVP_MD_CTX_new()) {
    GPR_ASSERT(state_ && EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr) == 1);
}

void ContentHash::add(std::span<const std::byte> piece) {
    EVP_DigestUpdate(state_.get(), piece.data(), piece.size());
}

ContentDigest ContentHash::finish() {
    ContentDigest digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(state_.get(), digest.data(), &size);
    GPR_ASSERT(size == digest.size());
    return digest;
}

}  // namespace gpr
