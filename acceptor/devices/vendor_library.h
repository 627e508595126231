// A device vendor's library, loaded.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace gpr {

class VendorLibrary {
public:
    // Loads the first of these that exists.
    explicit VendorLibrary(std::initializer_list<const char*> names) {
        for (const char* name : names) {
            handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            if (handle_ == nullptr) continue;
            name_ = name;
            return;
        }
    }
    // Never unloaded: the process ends soon, and some libraries crash when they are unloaded.
    VendorLibrary(const VendorLibrary&) = delete;
    VendorLibrary& operator=(const VendorLibrary&) = delete;

    [[nodiscard]] bool is_there() const { return handle_ != nullptr; }
    [[nodiscard]] const std::string& name() const { return name_; }

    template <class Function>
    [[nodiscard]] Function* function(const char* name) const {
        return reinterpret_cast<Function*>(dlsym(handle_, name));
    }

private:
    void* handle_ = nullptr;
    std::string name_;
};

}  // namespace gpr
