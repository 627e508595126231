// A libnvidia-ml.so.1 with two devices, for machines that have none. FAKE_NVML=hang, crash or fail
// makes it as bad as a driver can be. Declarations after the "NVML API Reference".
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, DRIVER_NOT_LOADED = 9, DEVICES = 2 };

static const char* const uuids[DEVICES] = {"GPU-11111111-aaaa-bbbb-cccc-000000000000",
                                           "GPU-22222222-aaaa-bbbb-cccc-000000000001"};

struct device {
    unsigned number;
};
static struct device devices[DEVICES] = {{0}, {1}};

int nvmlInit_v2(void) {
    const char* manner = getenv("FAKE_NVML");
    if (manner == NULL) return SUCCESS;
    if (strcmp(manner, "hang") == 0) {
        signal(SIGTERM, SIG_IGN);
        for (;;) pause();
    }
    if (strcmp(manner, "crash") == 0) raise(SIGSEGV);
    return DRIVER_NOT_LOADED;
}

int nvmlShutdown(void) { return SUCCESS; }

const char* nvmlErrorString(int error) {
    return error == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
    snprintf(version, length, "999.10");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = DEVICES;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device** device) {
    if (index >= DEVICES) return INVALID_ARGUMENT;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetName(struct device* device, char* name, unsigned length) {
    // A name is a vendor's word: it may hold anything.
    snprintf(name, length, "Imaginary %u\x1b", device->number);
    return SUCCESS;
}

int nvmlDeviceGetUUID(struct device* device, char* uuid, unsigned length) {
    snprintf(uuid, length, "%s", uuids[device->number]);
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(struct device* device, unsigned long long* total_free_used) {
    total_free_used[0] = (80ULL + device->number) << 30;
    total_free_used[1] = total_free_used[0];
    total_free_used[2] = 0;
    return SUCCESS;
}

int nvmlDeviceGetMinorNumber(struct device* device, unsigned* minor) {
    *minor = device->number;
    return SUCCESS;
}

struct pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

int nvmlDeviceGetPciInfo_v3(struct device* device, struct pci* pci) {
    memset(pci, 0, sizeof(*pci));
    snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", 0x1a + device->number);
    return SUCCESS;
}
