#include "transport/message_check.h"

#include <capnp/schema.h>
#include <kj/exception.h>

#include <cstdint>
#include <map>
#include <vector>

#include "transport/wire.h"

namespace gpr {

namespace {

struct Guard {
    uint32_t byte_offset;  // of the union's discriminant, in the data section
    uint16_t value;
};

struct PointerType {
    enum class Kind { text, data, structure, scalars, structures, pointers, forbidden };
    Kind kind = Kind::forbidden;
    uint32_t shape = 0;                                     // structure, structures
    capnp::ElementSize element = capnp::ElementSize::VOID;  // scalars
    uint32_t element_type = 0;                              // pointers: index into types
};

struct Rule {
    std::vector<Guard> guards;  // all must hold, because unions within groups nest
    uint32_t slot;              // in the pointer section
    uint32_t type;
};

struct Shape {
    std::vector<Rule> rules;
};

// What the schema says about pointers, in a flat form for a fast walk. Built once, never changed.
class Shapes {
public:
    Shapes() { root = shape_of(capnp::Schema::from<wire::Frame>()); }

    std::vector<Shape> shapes;
    std::vector<PointerType> types;
    uint32_t root;

private:
    uint32_t shape_of(capnp::StructSchema schema) {
        uint64_t id = schema.getProto().getId();
        if (auto known = index_.find(id); known != index_.end()) return known->second;
        auto index = static_cast<uint32_t>(shapes.size());
        index_[id] = index;
        shapes.emplace_back();
        std::vector<Rule> rules;
        add_rules(schema, {}, rules);
        shapes[index].rules = std::move(rules);
        return index;
    }

    void add_rules(capnp::StructSchema schema, const std::vector<Guard>& outer,
                   std::vector<Rule>& rules) {
        uint32_t discriminant = schema.getProto().getStruct().getDiscriminantOffset() * 2;
        for (auto field : schema.getFields()) {
            auto proto = field.getProto();
            auto guards = outer;
            if (proto.getDiscriminantValue() != capnp::schema::Field::NO_DISCRIMINANT) {
                guards.push_back({discriminant, proto.getDiscriminantValue()});
            }
            if (proto.isGroup()) {
                add_rules(field.getType().asStruct(), guards, rules);
            } else if (is_pointer(field.getType())) {
                uint32_t slot = proto.getSlot().getOffset();
                rules.push_back({std::move(guards), slot, type_of(field.getType())});
            }
        }
    }

    static bool is_pointer(capnp::Type type) {
        return type.isText() || type.isData() || type.isList() || type.isStruct() ||
               type.isInterface() || type.isAnyPointer();
    }

    uint32_t type_of(capnp::Type type) {
        using Kind = PointerType::Kind;
        PointerType result;
        if (type.isText()) result.kind = Kind::text;
        if (type.isData()) result.kind = Kind::data;
        if (type.isStruct()) {
            result.kind = Kind::structure;
            result.shape = shape_of(type.asStruct());
        }
        if (type.isList()) {
            auto element = type.asList().getElementType();
            if (element.isStruct()) {
                result.kind = Kind::structures;
                result.shape = shape_of(element.asStruct());
            } else if (is_pointer(element)) {
                result.kind = Kind::pointers;
                result.element_type = type_of(element);
            } else {
                result.kind = Kind::scalars;
                result.element = scalar_size(element);
            }
        }
        types.push_back(result);
        return static_cast<uint32_t>(types.size() - 1);
    }

    static capnp::ElementSize scalar_size(capnp::Type type) {
        if (type.isVoid()) return capnp::ElementSize::VOID;
        if (type.isBool()) return capnp::ElementSize::BIT;
        if (type.isInt8() || type.isUInt8()) return capnp::ElementSize::BYTE;
        if (type.isInt16() || type.isUInt16() || type.isEnum()) {
            return capnp::ElementSize::TWO_BYTES;
        }
        if (type.isInt32() || type.isUInt32() || type.isFloat32()) {
            return capnp::ElementSize::FOUR_BYTES;
        }
        return capnp::ElementSize::EIGHT_BYTES;
    }

    std::map<uint64_t, uint32_t> index_;
};

const Shapes& frame_shapes() {
    static const Shapes shapes;
    return shapes;
}

class Walk {
public:
    Walk(const Shapes& shapes, size_t budget) : shapes_(shapes), budget_(budget) {}

    // False: the message is malformed or costs too much. May also throw kj::Exception.
    bool structure(capnp::AnyStruct::Reader from, uint32_t shape) {
        auto data = from.getDataSection();
        auto pointers = from.getPointerSection();
        if (!charge(1 + data.size() / 8 + pointers.size())) return false;
        for (const Rule& rule : shapes_.shapes[shape].rules) {
            if (rule.slot < pointers.size() && applies(rule, data) &&
                !pointer(pointers[rule.slot], shapes_.types[rule.type])) {
                return false;
            }
        }
        return true;
    }

    bool pointer(capnp::AnyPointer::Reader from, const PointerType& type) {
        using Kind = PointerType::Kind;
        if (from.isNull()) return true;
        switch (type.kind) {
            case Kind::text: return charge(from.getAs<capnp::Text>().size() / 8 + 1);
            case Kind::data: return charge(from.getAs<capnp::Data>().size() / 8 + 1);
            case Kind::structure:
                return from.isStruct() && structure(from.getAs<capnp::AnyStruct>(), type.shape);
            case Kind::scalars: return from.isList() && scalars(from.getAs<capnp::AnyList>(), type);
            case Kind::structures:
                return from.isList() && structures(from.getAs<capnp::AnyList>(), type);
            case Kind::pointers:
                return from.isList() && pointers(from.getAs<capnp::AnyList>(), type);
            case Kind::forbidden: return false;
        }
        return false;
    }

private:
    static bool applies(const Rule& rule, capnp::Data::Reader data) {
        for (const Guard& guard : rule.guards) {
            uint16_t value = 0;  // what lies beyond a short data section is zero
            if (guard.byte_offset + 2 <= data.size()) {
                memcpy(&value, data.begin() + guard.byte_offset, 2);
            }
            if (value != guard.value) return false;
        }
        return true;
    }

    bool scalars(capnp::AnyList::Reader list, const PointerType& type) {
        if (list.getElementSize() != type.element) return false;
        // A list of Void may claim any length without occupying memory; the cost is that of a loop
        // over it.
        size_t bytes = type.element == capnp::ElementSize::VOID ? list.size() * size_t{8}
                                                                : list.getRawBytes().size();
        return charge(bytes / 8 + 1);
    }

    bool structures(capnp::AnyList::Reader list, const PointerType& type) {
        if (list.getElementSize() != capnp::ElementSize::INLINE_COMPOSITE) return false;
        if (!charge(1) || list.size() > budget_) return false;
        for (auto element : list.as<capnp::List<capnp::AnyStruct>>()) {
            if (!structure(element, type.shape)) return false;
        }
        return true;
    }

    bool pointers(capnp::AnyList::Reader list, const PointerType& type) {
        if (list.getElementSize() != capnp::ElementSize::POINTER) return false;
        if (!charge(1 + list.size())) return false;
        const PointerType& element_type = shapes_.types[type.element_type];
        for (auto element : list.as<capnp::List<capnp::AnyPointer>>()) {
            if (!pointer(element, element_type)) return false;
        }
        return true;
    }

    bool charge(size_t words) {
        if (words > budget_) return false;
        budget_ -= words;
        return true;
    }

    const Shapes& shapes_;
    size_t budget_;
};

}  // namespace

Result<> check_message(capnp::AnyPointer::Reader root, size_t message_words) {
    const Shapes& shapes = frame_shapes();
    try {
        // A well-formed tree costs its words, and one more for each struct or text of less than a
        // word.
        Walk walk(shapes, 2 * message_words + 64);
        if (root.isStruct() && walk.structure(root.getAs<capnp::AnyStruct>(), shapes.root)) {
            return {};
        }
    } catch (const kj::Exception&) {  // how the library reports "out of bounds"
    }
    return fail(EBADMSG, "malformed message");
}

}  // namespace gpr
