/* A library with NVML's ABI, driven by a scenario file: the entry points that the console calls through nvidia-ml-py.
 *
 * $NVML_SCENARIO names a text file of lines `key value`, read again whenever it changes. Keys of card N begin with `N.`;
 * `N.return.FUNCTION` makes that function of that card answer an NVML error code, `return.FUNCTION` that of the library.
 * What a scenario does not mention answers NVML_ERROR_NOT_SUPPORTED. Written from NVML's documented ABI.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, LOST = 15 };
enum { CARDS = 8, ENTRIES = 512, NAME = 96, TEXT = 160 };

static struct { char key[NAME]; char text[TEXT]; } entries[ENTRIES];
static int entry_count, started;
static struct stat seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char cards[CARDS];

static void load(void) {
    const char *path = getenv("NVML_SCENARIO");
    struct stat now;
    FILE *file;
    char line[NAME + TEXT];
    if (!path || stat(path, &now) != 0) return;
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size && now.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    if (!(file = fopen(path, "r"))) return;
    seen = now;
    entry_count = 0;
    while (entry_count < ENTRIES && fgets(line, sizeof line, file)) {
        char *space = strchr(line, ' ');
        if (!space) continue;
        *space = 0;
        space[strcspn(space + 1, "\n") + 1] = 0;
        snprintf(entries[entry_count].key, NAME, "%.*s", NAME - 1, line);
        snprintf(entries[entry_count].text, TEXT, "%.*s", TEXT - 1, space + 1);
        entry_count++;
    }
    fclose(file);
}

/* The text of a key; 0 where the scenario does not mention it. */
static int find(const char *key, char *text) {
    int found = 0;
    pthread_mutex_lock(&lock);
    load();
    for (int i = 0; i < entry_count && !found; i++)
        if (!strcmp(entries[i].key, key)) {
            snprintf(text, TEXT, "%s", entries[i].text);
            found = 1;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

static int card_text(const void *card, const char *what, char *text) {
    char key[NAME];
    snprintf(key, NAME, "%d.%s", (int)((const char *)card - cards), what);
    return find(key, text);
}

static int card_number(const void *card, const char *what, unsigned long long *value) {
    char text[TEXT];
    if (!card_text(card, what, text)) return NOT_SUPPORTED;
    *value = strtoull(text, NULL, 10);
    return SUCCESS;
}

static int library_return(const char *function) {
    char key[NAME], text[TEXT];
    snprintf(key, NAME, "return.%s", function);
    return find(key, text) ? atoi(text) : SUCCESS;
}

static void pause_ms(unsigned ms) {
    struct timespec span = {ms / 1000, (ms % 1000) * 1000000L};
    nanosleep(&span, NULL);
}

/* What this call must answer before it may look at its value; never, while the scenario has `N.hangs`. */
static int ready(const void *card, const char *function) {
    char key[NAME], text[TEXT];
    if (!started) return UNINITIALIZED;
    while (card_text(card, "hangs", text) && atoi(text)) pause_ms(20);
    if (library_return("any")) return library_return("any");
    if (card_text(card, "lost", text) && atoi(text)) return LOST;
    snprintf(key, NAME, "return.%s", function);
    return card_text(card, key, text) ? atoi(text) : SUCCESS;
}

static int number32(void *card, const char *function, const char *what, unsigned *value) {
    unsigned long long wide = 0;
    int code = ready(card, function);
    if (code == SUCCESS) code = card_number(card, what, &wide);
    if (code == SUCCESS) *value = (unsigned)wide;
    return code;
}

static int string(void *card, const char *function, const char *what, char *to, unsigned size) {
    char text[TEXT];
    int code = ready(card, function);
    if (code != SUCCESS) return code;
    if (!card_text(card, what, text)) return NOT_SUPPORTED;
    snprintf(to, size, "%s", text);
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) {
    int code = library_return("nvmlInitWithFlags");
    (void)flags;
    started = code == SUCCESS;
    return code;
}

int nvmlShutdown(void) {
    started = 0;
    return SUCCESS;
}

const char *nvmlErrorString(int code) {
    (void)code;
    return "an error of the scenario";
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    char text[TEXT];
    if (!started) return UNINITIALIZED;
    *count = find("count", text) ? (unsigned)atoi(text) : 0;
    return library_return("nvmlDeviceGetCount_v2");
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **card) {
    if (!started) return UNINITIALIZED;
    if (index >= CARDS) return INVALID_ARGUMENT;
    *card = cards + index;
    return ready(*card, "nvmlDeviceGetHandleByIndex_v2");
}

int nvmlDeviceGetName(void *card, char *to, unsigned size) { return string(card, __func__, "name", to, size); }
int nvmlDeviceGetUUID(void *card, char *to, unsigned size) { return string(card, __func__, "uuid", to, size); }

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} pci_info;

int nvmlDeviceGetPciInfo_v3(void *card, pci_info *info) {
    unsigned long long domain = 0;
    memset(info, 0, sizeof *info);
    card_number(card, "domain", &domain);
    info->domain = (unsigned)domain;
    return number32(card, __func__, "bus", &info->bus);
}

static int library_number(const char *key, int *value) {
    char text[TEXT];
    if (!find(key, text)) return NOT_SUPPORTED;
    *value = atoi(text);
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *to, unsigned size) {
    char text[TEXT];
    if (!started) return UNINITIALIZED;
    if (!find("driver", text)) return NOT_SUPPORTED;
    snprintf(to, size, "%s", text);
    return library_return(__func__);
}
int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    if (!started) return UNINITIALIZED;
    return library_return(__func__) ? library_return(__func__) : library_number("cuda", version);
}

/* Keys such as `p2p.0.1` (status of reading), `nvlink.0.1`, `path.0.1`: one way each. */
static int between(const void *one, const void *two, const char *function, const char *what, int *value) {
    char key[NAME];
    int code = ready(one, function);
    if (code != SUCCESS) return code;
    snprintf(key, NAME, "%s.%d.%d", what, (int)((const char *)one - cards), (int)((const char *)two - cards));
    return library_number(key, value);
}
int nvmlDeviceGetP2PStatus(void *one, void *two, int capability, int *status) {
    if (capability == 0) return between(one, two, __func__, "p2p", status);
    return capability == 2 ? between(one, two, __func__, "nvlink", status) : INVALID_ARGUMENT;
}
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *two, int *level) {
    return between(one, two, __func__, "path", level);
}

int nvmlDeviceGetPersistenceMode(void *card, unsigned *value) { return number32(card, __func__, "persistence", value); }
int nvmlDeviceGetDisplayMode(void *card, unsigned *value) { return number32(card, __func__, "display", value); }
int nvmlDeviceGetDisplayActive(void *card, unsigned *value) { return number32(card, __func__, "desktop", value); }
int nvmlDeviceGetNumaNodeId(void *card, int *value) { return number32(card, __func__, "numa", (unsigned *)value); }
int nvmlDeviceGetMigMode(void *card, unsigned *now, unsigned *later) {
    *later = 0;
    return number32(card, __func__, "mig", now);
}

typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;

int nvmlDeviceGetMemoryInfo(void *card, memory_v1 *info) {
    int code = ready(card, __func__);
    unsigned long long reserved = 0;
    if (code != SUCCESS) return code;
    if (card_number(card, "memory.total", &info->total) || card_number(card, "memory.used", &info->used))
        return NOT_SUPPORTED;
    card_number(card, "memory.reserved", &reserved);
    info->used += reserved;
    info->free = info->total - info->used;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *card, memory_v2 *info) {
    int code = ready(card, __func__);
    if (code != SUCCESS) return code;
    if (info->version != 0x02000028) return 25;
    if (card_number(card, "memory.total", &info->total) || card_number(card, "memory.used", &info->used) ||
        card_number(card, "memory.reserved", &info->reserved))
        return NOT_SUPPORTED;
    info->free = info->total - info->used - info->reserved;
    card_number(card, "memory.free", &info->free);
    return SUCCESS;
}

typedef struct { unsigned gpu, memory; } utilization;

int nvmlDeviceGetUtilizationRates(void *card, utilization *rates) {
    int code = number32(card, __func__, "util.gpu", &rates->gpu);
    return code == SUCCESS ? number32(card, __func__, "util.memory", &rates->memory) : code;
}

int nvmlDeviceGetTemperature(void *card, unsigned sensor, unsigned *value) {
    return sensor == 0 ? number32(card, __func__, "temperature", value) : INVALID_ARGUMENT;
}
int nvmlDeviceGetPowerUsage(void *card, unsigned *value) { return number32(card, __func__, "power", value); }
int nvmlDeviceGetEnforcedPowerLimit(void *card, unsigned *value) { return number32(card, __func__, "limit", value); }
int nvmlDeviceGetPowerManagementLimit(void *card, unsigned *value) {
    return number32(card, __func__, "limit.set", value);
}
int nvmlDeviceGetClockInfo(void *card, unsigned type, unsigned *value) {
    if (type == 2) return number32(card, __func__, "clock.mem", value);
    return type == 1 ? number32(card, __func__, "clock.sm", value) : INVALID_ARGUMENT;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *card, unsigned *value) { return number32(card, __func__, "gen", value); }
int nvmlDeviceGetMaxPcieLinkGeneration(void *card, unsigned *value) {
    return number32(card, __func__, "gen.max", value);
}
int nvmlDeviceGetCurrPcieLinkWidth(void *card, unsigned *value) { return number32(card, __func__, "width", value); }
int nvmlDeviceGetMaxPcieLinkWidth(void *card, unsigned *value) { return number32(card, __func__, "width.max", value); }
int nvmlDeviceGetPcieReplayCounter(void *card, unsigned *value) { return number32(card, __func__, "replays", value); }

static int reasons(void *card, const char *function, unsigned long long *value) {
    int code = ready(card, function);
    return code == SUCCESS ? card_number(card, "reasons", value) : code;
}
int nvmlDeviceGetCurrentClocksEventReasons(void *card, unsigned long long *value) {
    return reasons(card, __func__, value);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, unsigned long long *value) {
    return reasons(card, __func__, value);
}

/* Blocks for `throughput.ms`, and as long as `throughput.gate` is closed. */
int nvmlDeviceGetPcieThroughput(void *card, unsigned direction, unsigned *value) {
    unsigned long long ms = 0, closed = 0;
    int code = ready(card, __func__);
    if (code != SUCCESS) return code;
    while (card_number(card, "throughput.closed", &closed) == SUCCESS && closed) pause_ms(5);
    card_number(card, "throughput.ms", &ms);
    pause_ms((unsigned)ms);
    return number32(card, __func__, direction ? "throughput.rx" : "throughput.tx", value);
}

typedef struct {
    uint32_t field, scope;
    int64_t timestamp, latency;
    uint32_t type, code;
    union { unsigned narrow; unsigned long long wide; } value;
} field_value;

/* A counter of `counters.tx` (or rx) bytes a second since the machine's start, `counters.bits` wide. */
static int counter(void *card, const char *what, field_value *field) {
    unsigned long long speed, bits = 32;
    struct timespec now;
    if (card_number(card, what, &speed) != SUCCESS) return NOT_SUPPORTED;
    card_number(card, "counters.bits", &bits);
    clock_gettime(CLOCK_MONOTONIC, &now);
    field->value.wide = (unsigned long long)(((double)now.tv_sec + now.tv_nsec / 1e9) * (double)speed);
    if (bits == 32) field->value.wide &= 0xffffffffULL;
    field->type = bits == 32 ? 1 : 3;
    return SUCCESS;
}

int nvmlDeviceGetFieldValues(void *card, int count, field_value *fields) {
    int code = ready(card, __func__);
    if (code != SUCCESS) return code;
    for (int i = 0; i < count; i++)
        fields[i].code = fields[i].field == 197   ? counter(card, "counters.tx", fields + i)
                         : fields[i].field == 198 ? counter(card, "counters.rx", fields + i)
                                                  : NOT_SUPPORTED;
    return SUCCESS;
}

typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process;

/* `what` is a list `pid:bytes pid:bytes …`; as in NVML, too small a place answers how many there are. */
static int processes(void *card, const char *function, const char *what, unsigned *count, process *to) {
    char text[TEXT], *rest = text, *word;
    unsigned room = *count, n = 0;
    int code = ready(card, function);
    if (code != SUCCESS) return code;
    if (!card_text(card, what, text)) return NOT_SUPPORTED;
    while ((word = strsep(&rest, " ")))
        if (*word) {
            char *colon = strchr(word, ':');
            if (to && n < room) {
                memset(to + n, 0, sizeof *to);
                to[n].pid = (unsigned)strtoul(word, NULL, 10);
                to[n].used = colon ? strtoull(colon + 1, NULL, 10) : 0;
            }
            n++;
        }
    *count = n;
    return n > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *card, unsigned *count, process *to) {
    return processes(card, __func__, "compute", count, to);
}
int nvmlDeviceGetComputeRunningProcesses_v2(void *card, unsigned *count, process *to) {
    return processes(card, __func__, "compute", count, to);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *card, unsigned *count, process *to) {
    return processes(card, __func__, "graphics", count, to);
}
int nvmlDeviceGetGraphicsRunningProcesses_v2(void *card, unsigned *count, process *to) {
    return processes(card, __func__, "graphics", count, to);
}
