/* Machines that are described, not measured (ebb/experimental/plan.h). */
#include <stdio.h>
#include <string.h>

#include "ebb/experimental/plan.h"

#define GIB            1073741824.0
#define SYSTEM_BYTES   (0.4 * GIB)
#define OTHERS_BYTES   (384.0 * 1048576)
#define MAC_S_PER_CPU  60e9
#define USUAL_DISK     1e9
#define BUSY_DISK      0.9       /* of the disk's speed, while all threads multiply */

static const ebb_machine_kind kinds[] = {
    { "cloud", "2 vCPUs of a cloud, 8 GB, virtual SSD", 2, 8 * GIB, 20e9, 120e9, 1.5e9 },
    { "pi5", "Raspberry Pi 5, 4 cores, 8 GB, NVMe on one lane", 4, 8 * GIB, 10e9, 100e9, 0.4e9 },
    { "n100", "mini PC with an N100, 4 cores, 16 GB, NVMe", 4, 16 * GIB, 20e9, 140e9, 1.8e9 },
    { "old-laptop", "laptop of 2016, 2 cores, 8 GB, SATA SSD", 2, 8 * GIB, 14e9, 70e9, 0.5e9 },
    { "desktop", "desktop, 8 cores, 32 GB of DDR5, NVMe", 8, 32 * GIB, 55e9, 900e9, 4e9 },
};

bool ebb_machine_kind_get(size_t i, ebb_machine_kind *out)
{
    if (i >= sizeof kinds / sizeof kinds[0])
        return false;
    *out = kinds[i];
    return true;
}

/* What a pass has beside its products takes, on all threads, as long as so many multiply-adds do. */
static ebb_overheads usual_overheads(double mac_s)
{
    const double unit = 200e9 / mac_s;           /* two cores of a server, on which the figures were taken */

    return (ebb_overheads){ .product_s = 2e-6, .output_s = 2e-10 * unit, .attend_s = 1e-9 * unit,
                            .attend_dim_s = 2e-11 * unit, .element_s = 4e-10 * unit, .state_s = 3e-11 * unit };
}

static void set_speeds(ebb_machine *m, double memory_bytes_s, double mac_s, double disk_bytes_s)
{
    m->memory_bytes_s = memory_bytes_s;
    m->int8_mac_s = mac_s;
    m->measured_type = EBB_TYPE_Q4_K;
    m->overheads = usual_overheads(mac_s);
    m->disk_bytes_s = disk_bytes_s;
    m->disk_busy_bytes_s = disk_bytes_s * BUSY_DISK;
    for (int i = 0; i <= 16; i++)
        m->expert_miss_rate[i] = 1;              /* nothing is known of any model */
}

void ebb_machine_describe(const ebb_machine_kind *k, ebb_machine *out)
{
    memset(out, 0, sizeof *out);
    out->n_cpus = k->n_cpus;
    out->available_bytes = (uint64_t)(k->ram_bytes - SYSTEM_BYTES - OTHERS_BYTES);
    out->os_reserve_bytes = (uint64_t)OTHERS_BYTES;
    snprintf(out->available_why, sizeof out->available_why, "like %s", k->name);
    set_speeds(out, k->memory_bytes_s, k->mac_s, k->disk_bytes_s);
}

void ebb_machine_describe_speed(double memory_bytes_s, uint32_t n_cpus, uint64_t available_bytes, ebb_machine *out)
{
    memset(out, 0, sizeof *out);
    out->n_cpus = n_cpus;
    out->available_bytes = available_bytes;
    snprintf(out->available_why, sizeof out->available_why, "described");
    set_speeds(out, memory_bytes_s, MAC_S_PER_CPU * n_cpus, USUAL_DISK);
}
