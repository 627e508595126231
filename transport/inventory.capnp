# What an acceptor says about its devices: part of its Welcome (handshake.capnp).
@0xd2a86f1e5b7c9034;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gpr::wire");

# The fields are explained in transport/inventory.h.
struct Inventory {
  ageMs @0 :UInt64; cpuModel @1 :Text; cpuCount @2 :UInt32; cpuFeatures @3 :List(Text);
  memoryBytes @4 :UInt64; memoryFreeBytes @5 :UInt64; devices @6 :List(Device);
  nodes @7 :List(DeviceNode); opencl @8 :List(OpenclPlatform); sources @9 :List(InventorySource);
}

struct Device {
  id @0 :Text; family @1 :Text; name @2 :Text; uuid @3 :Text; pci @4 :Text; driver @5 :Text;
  memoryBytes @6 :UInt64; nodes @7 :List(Text); commonNodes @8 :List(Text); whole @9 :Bool;
  sessions @10 :UInt32; exclusive @11 :Bool;
}

struct DeviceNode { path @0 :Text; major @1 :UInt32; minor @2 :UInt32; sysfs @3 :Text; }

struct OpenclPlatform {
  name @0 :Text; vendor @1 :Text; version @2 :Text; devices @3 :List(OpenclDevice);
}

struct OpenclDevice {
  name @0 :Text; kind @1 :Text; version @2 :Text; driver @3 :Text; computeUnits @4 :UInt32;
  memoryBytes @5 :UInt64;
}

struct InventorySource { name @0 :Text; state @1 :Text; detail @2 :Text; }
