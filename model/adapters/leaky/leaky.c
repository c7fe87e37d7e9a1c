// A small log-structured key-value store that survives power cuts, and twenty ways to break it.
//
//   super     two slots of 1 KiB, the newer valid one counts: table, generation, sequence
//   table-N   a checkpoint: all pairs, under one checksum
//   log       | hint | transaction | transaction | ... | what an older generation left |
//                    each begins on a sector: | record | record | record + COMMIT | zeros |
//
// A transaction is durable when its records are in the log and the log is synced. Records carry
// their generation, their sequence number and a checksum over everything else, so recovery replays
// whole transactions up to the first record that is not the next one, and cuts the rest off.
//
// When the log is full, a checkpoint writes all pairs to a new table under a temporary name,
// syncs it, renames it, and syncs the directory. Then the next slot of `super` names the table and
// a new generation, and is synced. Only then is the old table removed and the log written from its
// beginning again: its old records are of a generation that nobody asks for any more.
//
// The hint says where the transactions ended that were durable when the last one was begun. If
// recovery does not get that far, the log is damaged, and it says so rather than lose them.
//
// Nothing here relies on more than POSIX promises: files and directories are durable when they
// are synced, in any order before that, and only a sector is written whole or not at all.
//
// Each bug is one `bug(name)` in the code. A store is in the current directory.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- Bugs

#define BUGS(X) \
    X(lazy_ack, "etcd#14370", "a commit returns, and the next one syncs it") \
    X(fsync_wrong_fd, "zigbee-herdsman#1134, WT-2559", "a commit syncs another file") \
    X(hint_early, "turbodb#54", "the hint includes the transaction that is being written") \
    X(sum_wrong_range, "badger#143, ALICE", "a record's checksum covers its head alone") \
    X(no_commit_marker, "mini-lsm#74, turbodb#127", "recovery replays unfinished transactions") \
    X(append_after_torn_tail, "cqlite#1390", "recovery appends behind a torn record") \
    X(stale_generation, "nomt#638", "recovery replays records of older generations") \
    X(no_dir_fsync, "cqlite#1392, etcd#6368", "a checkpoint does not sync its table's new name") \
    X(rename_before_fsync, "ALICE, LazyFS", "a checkpoint never syncs the table it renames") \
    X(super_before_table, "ALICE", "a checkpoint writes the super before the table") \
    X(log_reused_early, "topgun#119", "the log begins anew while the super is not synced") \
    X(log_truncated_early, "mini-lsm#124", "a checkpoint empties the log first") \
    X(table_in_place, "ALICE", "a checkpoint truncates and rewrites the table in use") \
    X(removed_early, "leveldb#195", "the old table is removed while the super is not synced") \
    X(dirty_checkpoint, "wiredtiger#878", "a checkpoint takes a part of a transaction along") \
    X(one_slot, "ALICE", "the super is overwritten in place") \
    X(creation_not_synced, "leveldb#196, badger#104", "creating a store does not sync its names") \
    X(created_in_place, "bbolt#567", "the super is created under its own name") \
    X(torn_slot_blessed, "redb#1290", "recovery gives a torn slot a fresh checksum") \
    X(recovery_drops_log, "Typhon#715", "recovery empties a torn log before its checkpoint")

#define X(name, source, what) name,
enum bug { BUGS(X) bug_count };
#undef X
#define X(name, source, what) {#name, source, what},
static const struct { const char *name, *source, *what; } bugs[] = {BUGS(X)};
#undef X

static enum bug planted = bug_count;
static bool bug(enum bug which) { return planted == which; }

// ---- Errors and files

// Ends the program with one sentence.
#define fail(...) (printf(__VA_ARGS__), printf("\n"), exit(1))

static void must(const char *what, bool done) {
    if (!done) fail("cannot %s: %s", what, strerror(errno));
}

static void *allocate(void *old, size_t bytes) {
    void *new = realloc(old, bytes ? bytes : 1);
    must("allocate", new);
    return new;
}

static int open_file(const char *name, int flags) {
    int fd = open(name, flags | O_CLOEXEC, 0644);
    if (fd < 0) fail("the store does not open: %s: %s", name, strerror(errno));
    return fd;
}

static void write_at(int fd, const void *bytes, size_t len, uint64_t offset) {
    must("write", pwrite(fd, bytes, len, (off_t)offset) == (ssize_t)len);
}

static void sync_fd(int fd) { must("sync", !fsync(fd)); }

// A whole file, with `spare` zeros behind it.
static char *read_file(int fd, size_t *size, size_t spare) {
    struct stat stat;
    must("read", !fstat(fd, &stat));
    *size = (size_t)stat.st_size;
    char *bytes = allocate(NULL, *size + spare);
    memset(bytes, 0, *size + spare);
    must("read", pread(fd, bytes, *size, 0) == (ssize_t)*size);
    return bytes;
}

// CRC-32C, bit by bit: stores here are small.
static uint32_t crc(const void *bytes, size_t len) {
    uint32_t sum = ~0u;
    for (const uint8_t *at = bytes; len--; at++) {
        sum ^= *at;
        for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (0x82f63b78u & -(sum & 1));
    }
    return ~sum;
}

// ---- Pairs in memory

// A pair, or a change of one: then a value of NULL removes it.
struct pair { char *key, *value; };
struct map { struct pair *pairs; size_t count; };

static char *copy_of(const char *bytes, size_t len) {
    char *copy = memcpy(allocate(NULL, len + 1), bytes, len);
    copy[len] = 0;
    return copy;
}

static struct pair pair_of(const char *key, const char *value) {
    char *copy = value ? copy_of(value, strlen(value)) : NULL;
    return (struct pair){copy_of(key, strlen(key)), copy};
}

static void free_pair(struct pair *pair) { free(pair->key), free(pair->value); }

static const char *map_get(const struct map *map, const char *key) {
    for (size_t i = 0; i < map->count; i++)
        if (!strcmp(map->pairs[i].key, key)) return map->pairs[i].value;
    return NULL;
}

static void map_apply(struct map *map, const struct pair *change) {
    size_t at = 0;
    while (at < map->count && strcmp(map->pairs[at].key, change->key)) at++;
    if (at < map->count) {
        free_pair(&map->pairs[at]);
        map->pairs[at] = map->pairs[--map->count];
    }
    if (!change->value) return;
    map->pairs = allocate(map->pairs, (map->count + 1) * sizeof *map->pairs);
    map->pairs[map->count++] = pair_of(change->key, change->value);
}

static bool same(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

// ---- Format

#define SECTOR 512u
#define SLOT_STRIDE 4096
#define LOG_FULL (12u << 10)
#define SUPER_MAGIC 0x7570756cu
#define RECORD_MAGIC 0x6365726cu
#define HINT_MAGIC 0x746e696cu
#define TABLE_MAGIC 0x6c62746cu

struct slot {
    uint32_t magic, generation;
    uint64_t epoch, table;
    uint64_t sequence;  // of the first record of the generation
    char reserved[988];
    uint32_t sum;  // over all of the above
};
_Static_assert(sizeof(struct slot) == 2 * SECTOR, "a slot is longer than what is written whole");

// Sums of these two are over all that follows.
struct record {
    uint32_t magic, sum, generation, flags;
    uint64_t sequence;
    uint32_t key_len, value_len;
};
struct hint { uint32_t magic, sum, generation, unused; uint64_t end; };
enum { COMMIT = 1, DELETE = 2 };

// Takes the first sector of a table; records follow, which the sum is over.
struct table { uint32_t magic, sum; uint64_t number, bytes; };

struct store {
    int dir, super, log;
    struct slot now;
    uint64_t end, sequence;  // of the next record
    struct map map;
};

static uint64_t to_sector(uint64_t at) { return (at + SECTOR - 1) / SECTOR * SECTOR; }

static uint32_t slot_sum(const struct slot *slot) { return crc(slot, offsetof(struct slot, sum)); }

static uint32_t hint_sum(const struct hint *hint) {
    return crc(&hint->generation, sizeof *hint - offsetof(struct hint, generation));
}

static uint32_t record_sum(const struct record *record) {
    size_t covered = sizeof *record - offsetof(struct record, generation);
    if (!bug(sum_wrong_range)) covered += record->key_len + record->value_len;
    return crc(&record->generation, covered);
}

// Each record begins at a multiple of 8, so that it can be read where it is.
static size_t record_len(const struct record *record) {
    return (sizeof *record + record->key_len + record->value_len + 7) / 8 * 8;
}

// Puts changes into records, the last one with COMMIT, and zeros behind them up to a sector.
// `size` bytes of other things come first.
static char *encode(const struct store *s, const struct pair *pairs, size_t count, size_t *size) {
    char *bytes = allocate(NULL, *size);
    memset(bytes, 0, *size);
    for (size_t i = 0; i < count; i++) {
        const struct pair *pair = &pairs[i];
        struct record head = {
            .magic = RECORD_MAGIC,
            .generation = s->now.generation,
            .flags = (i + 1 == count ? COMMIT : 0) | (pair->value ? 0 : DELETE),
            .sequence = s->sequence + i,
            .key_len = (uint32_t)strlen(pair->key),
            .value_len = pair->value ? (uint32_t)strlen(pair->value) : 0,
        };
        size_t end = *size + record_len(&head);
        bytes = allocate(bytes, to_sector(end));
        memset(bytes + *size, 0, to_sector(end) - *size);
        struct record *record = memcpy(bytes + *size, &head, sizeof head);
        memcpy(record + 1, pair->key, head.key_len);
        if (pair->value) memcpy((char *)(record + 1) + head.key_len, pair->value, head.value_len);
        record->sum = record_sum(record);
        *size = end;
    }
    *size = to_sector(*size);
    return bytes;
}

// Applies the records between two places.
static void apply_records(struct map *map, const char *from, const char *to) {
    while (from < to) {
        const struct record *record = (const struct record *)from;
        if (record->magic != RECORD_MAGIC) return;  // the zeros at the end of a sector
        const char *key = from + sizeof *record;
        struct pair change = {.key = copy_of(key, record->key_len)};
        if (!(record->flags & DELETE))
            change.value = copy_of(key + record->key_len, record->value_len);
        map_apply(map, &change);
        free_pair(&change);
        from += record_len(record);
    }
}

static char *table_name(uint64_t number) {
    static char name[32];
    snprintf(name, sizeof name, "table-%llu", (unsigned long long)number);
    return name;
}

// ---- Checkpoints

static void write_slot(struct store *s, struct slot *slot) {
    slot->magic = SUPER_MAGIC;
    slot->sum = slot_sum(slot);
    write_at(s->super, slot, sizeof *slot, bug(one_slot) ? 0 : slot->epoch % 2 * SLOT_STRIDE);
    s->now = *slot;
}

static void write_table(struct store *s, uint64_t number) {
    size_t size = SECTOR;
    char *bytes = encode(s, s->map.pairs, s->map.count, &size);
    struct table head = {TABLE_MAGIC, crc(bytes + SECTOR, size - SECTOR), number, size};
    memcpy(bytes, &head, sizeof head);

    bool in_place = bug(table_in_place) && number == s->now.table;
    const char *name = in_place ? table_name(number) : "table.tmp";
    // After a cut, the temporary name may still be one of a table in use: never write to that.
    if (!in_place) unlink(name);
    int fd = open_file(name, O_WRONLY | O_CREAT | (in_place ? O_TRUNC : O_EXCL));
    for (size_t at = 0; at < size; at += 4096)
        write_at(fd, bytes + at, size - at < 4096 ? size - at : 4096, at);
    free(bytes);
    if (!bug(rename_before_fsync)) sync_fd(fd);
    close(fd);
    if (in_place) return;
    must("rename", !rename(name, table_name(number)));
    if (!bug(no_dir_fsync)) sync_fd(s->dir);
}

static void checkpoint(struct store *s) {
    uint64_t old = s->now.table;
    struct slot next = s->now;
    next.epoch++;
    next.table = bug(table_in_place) && old ? old : old + 1;
    next.generation++;
    next.sequence = s->sequence;

    if (bug(log_truncated_early)) must("truncate", !ftruncate(s->log, SECTOR));
    if (bug(super_before_table)) write_slot(s, &next);
    write_table(s, next.table);
    if (bug(removed_early) && old) unlink(table_name(old));
    if (!bug(super_before_table)) write_slot(s, &next);
    if (!bug(log_reused_early)) sync_fd(s->super);
    if (old && old != next.table) unlink(table_name(old));
    s->end = SECTOR;
}

// ---- Transactions

// Makes changes durable, all or none.
static void commit(struct store *s, const struct pair *changes, size_t count) {
    size_t size = 0;
    free(encode(s, changes, count, &size));
    if (bug(dirty_checkpoint) && count > 1) map_apply(&s->map, changes);
    if (s->end + size > LOG_FULL) checkpoint(s);

    size = 0;
    char *bytes = encode(s, changes, count, &size);
    uint64_t durable = s->end + (bug(hint_early) ? size : 0);
    struct hint hint = {HINT_MAGIC, 0, s->now.generation, 0, durable};
    hint.sum = hint_sum(&hint);
    if (bug(lazy_ack)) sync_fd(s->log);
    write_at(s->log, &hint, sizeof hint, 0);
    write_at(s->log, bytes, size, s->end);
    free(bytes);
    if (!bug(lazy_ack)) sync_fd(bug(fsync_wrong_fd) ? s->super : s->log);
    s->end += size, s->sequence += count;
    for (size_t i = 0; i < count; i++) map_apply(&s->map, &changes[i]);
}

// ---- Recovery

static void create(struct store *s) {
    s->log = open_file("log", O_RDWR | O_CREAT | O_TRUNC);
    sync_fd(s->log);
    if (!bug(creation_not_synced)) sync_fd(s->dir);
    const char *name = bug(created_in_place) ? "super" : "super.tmp";
    unlink(name);
    s->super = open_file(name, O_RDWR | O_CREAT | O_EXCL);
    write_slot(s, &(struct slot){.generation = 1, .epoch = 1, .sequence = 1});
    sync_fd(s->super);
    if (!bug(created_in_place)) must("rename", !rename(name, "super"));
    if (!bug(creation_not_synced)) sync_fd(s->dir);
    s->end = SECTOR, s->sequence = 1;
}

static void read_super(struct store *s) {
    size_t size;
    char *bytes = read_file(s->super, &size, 2 * SLOT_STRIDE);
    for (int i = 0; i < 2; i++) {
        struct slot slot;
        memcpy(&slot, bytes + i * SLOT_STRIDE, sizeof slot);
        bool valid = slot.magic == SUPER_MAGIC && slot.sum == slot_sum(&slot);
        if (valid && slot.epoch > s->now.epoch) s->now = slot;
        if (bug(torn_slot_blessed) && !valid && slot.magic == SUPER_MAGIC) {
            slot.sum = slot_sum(&slot);
            write_at(s->super, &slot, sizeof slot, i * SLOT_STRIDE);
        }
    }
    free(bytes);
    if (!s->now.epoch) fail("the store does not open: super has no valid slot");
}

// Removes what may be left of a checkpoint before and after its super became durable.
static void sweep(const struct store *s) {
    unlink("super.tmp");
    unlink("table.tmp");
    unlink(table_name(s->now.table + 1));
    if (s->now.table > 1) unlink(table_name(s->now.table - 1));
}

static void read_table(struct store *s) {
    if (!s->now.table) return;
    const char *name = table_name(s->now.table);
    int fd = open_file(name, O_RDONLY);
    size_t size;
    char *bytes = read_file(fd, &size, SECTOR);
    close(fd);
    struct table head;
    memcpy(&head, bytes, sizeof head);
    if (head.magic != TABLE_MAGIC || head.number != s->now.table || head.bytes != size
        || head.sum != crc(bytes + SECTOR, size - SECTOR))
        fail("the store does not open: %s is damaged", name);
    apply_records(&s->map, bytes + SECTOR, bytes + size);
    free(bytes);
}

// The record at a place of the log if it is the next one, else NULL.
static const struct record *next_record(const struct store *s, const char *log, size_t size,
                                        uint64_t at, uint64_t sequence) {
    const struct record *record = (const struct record *)(log + at);
    if (at + sizeof *record > size || record->magic != RECORD_MAGIC) return NULL;
    if (record->key_len > size || record->value_len > size) return NULL;
    if (at + record_len(record) > to_sector(size) || record->sum != record_sum(record)) return NULL;
    bool ours = record->generation == s->now.generation && record->sequence == sequence;
    return ours || bug(stale_generation) ? record : NULL;
}

static void replay(struct store *s) {
    size_t size;
    char *log = read_file(s->log, &size, SECTOR);
    uint64_t waiting = 0, generation = s->now.generation;
    const struct record *record;
    s->end = SECTOR, s->sequence = s->now.sequence;
    for (uint64_t at = SECTOR; (record = next_record(s, log, size, at, s->sequence + waiting));) {
        at += record_len(record);
        waiting++;
        if (!(record->flags & COMMIT) && !bug(no_commit_marker)) continue;
        apply_records(&s->map, log + s->end, log + at);
        if (record->flags & COMMIT) at = to_sector(at);
        s->end = at, s->sequence += waiting, waiting = 0;
    }
    const struct hint *hint = (const struct hint *)log;
    bool known = size >= sizeof *hint && hint->magic == HINT_MAGIC && hint->sum == hint_sum(hint);
    if (known && hint->generation == generation && hint->end > s->end)
        fail("the store does not open: the log ends before its hint");

    // A record of this generation behind the end is of a transaction that was cut off.
    const struct record *rest = (const struct record *)(log + s->end);
    bool torn = s->end < size && rest->magic == RECORD_MAGIC && rest->generation == generation;
    if (torn && bug(append_after_torn_tail)) {
        s->end = to_sector(s->end + record_len(rest));
    } else if (torn && bug(recovery_drops_log)) {
        must("truncate", !ftruncate(s->log, 0));
        checkpoint(s);
    } else if (size > s->end) {
        must("truncate", !ftruncate(s->log, (off_t)s->end));
        sync_fd(s->log);
    }
    free(log);
}

static void store_open(struct store *s) {
    *s = (struct store){.dir = open_file(".", O_RDONLY | O_DIRECTORY)};
    if (access("super", F_OK) && errno == ENOENT) {
        create(s);
        return;
    }
    s->super = open_file("super", O_RDWR);
    s->log = open_file("log", O_RDWR);
    // What a killed process has left may be in memory only. Make it durable before it is built on.
    sync_fd(s->super), sync_fd(s->log), sync_fd(s->dir);
    read_super(s);
    sweep(s);
    read_table(s);
    replay(s);
}

static void store_close(struct store *s) {
    close(s->super), close(s->log), close(s->dir);
    for (size_t i = 0; i < s->map.count; i++) free_pair(&s->map.pairs[i]);
    free(s->map.pairs);
}

// ---- Workload

enum { KEYS = 12, BATCH = 5 };

// A value of a certain length: `12.0x700` is `12.0x700,` again and again, 700 bytes of it.
static const char *expand(const char *token) {
    static char value[2048];
    const char *x = strchr(token, 'x');
    size_t len = x ? (size_t)atoi(x + 1) % sizeof value : 0, period = strlen(token) + 1;
    for (size_t i = 0; i < len; i++) value[i] = (i + 1) % period ? token[i % period] : ',';
    value[len] = 0;
    return value;
}

static uint32_t draw(uint64_t *seed, uint32_t below) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % below;
}

static void run(unsigned count, uint64_t seed) {
    static const unsigned lengths[] = {24, 200, 600, 1400};
    const char *name = getenv("TREERING_ACKS");
    int acks = open_file(name ? name : "/dev/null", O_WRONLY | O_APPEND | O_CREAT);
    struct store s;
    store_open(&s);
    for (unsigned id = 1; id <= count; id++) {
        struct pair changes[BATCH];
        unsigned size = draw(&seed, 3) ? 1 : 2 + draw(&seed, BATCH - 1), first = draw(&seed, KEYS);
        for (unsigned i = 0; i < size; i++) {
            char key[16], token[48];
            snprintf(key, sizeof key, "k%u", (first + i * 5) % KEYS);
            snprintf(token, sizeof token, "%u.%ux%u", id, i, lengths[draw(&seed, 4)]);
            bool put = draw(&seed, 6);
            changes[i] = pair_of(key, put ? expand(token) : NULL);
            dprintf(acks, put ? "try %u put %s %s\n" : "try %u del %s\n", id, key, token);
        }
        commit(&s, changes, size);
        dprintf(acks, "ok %u\n", id);
        for (unsigned i = 0; i < size; i++) free_pair(&changes[i]);
        if (!draw(&seed, 24)) checkpoint(&s);
        if (id == count * 3 / 5) {
            store_close(&s);
            store_open(&s);
        }
    }
    store_close(&s);
}

// ---- Checker

// What the acknowledged lines promise, without and with the last transaction if only tried.
struct promise {
    struct map without, with;
    struct pair *tried;  // every change that was ever tried
    size_t count;
};

static struct promise read_promise(void) {
    struct promise p = {0};
    const char *name = getenv("TREERING_ACKS");
    FILE *file = fopen(name ? name : "/dev/null", "r");
    must("read what was acknowledged", file);
    char line[256], key[32], token[64];
    size_t sure = 0;
    while (fgets(line, sizeof line, file)) {
        int words = sscanf(line, "try %*u %*s %31s %63s", key, token);
        if (words > 0) {
            p.tried = allocate(p.tried, (p.count + 1) * sizeof *p.tried);
            p.tried[p.count] = pair_of(key, words > 1 ? expand(token) : NULL);
            map_apply(&p.with, &p.tried[p.count++]);
        } else {
            while (sure < p.count) map_apply(&p.without, &p.tried[sure++]);
        }
    }
    fclose(file);
    return p;
}

static void compare(const struct map *map, const struct promise *p) {
    bool all_with = true, all_without = true;
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        const char *is = map_get(map, key), *was = map_get(&p->without, key);
        bool with = same(is, map_get(&p->with, key)), without = same(is, was);
        all_with &= with;
        all_without &= without;
        if (with || without) continue;
        if (!is) fail("lost: %s is gone", key);
        bool known = false;
        for (size_t j = 0; j < p->count; j++)
            known |= !strcmp(p->tried[j].key, key) && same(is, p->tried[j].value);
        if (!known) fail("damaged: %s has a value that nobody wrote", key);
        if (!was) fail("undead: %s was deleted and is back", key);
        fail("lost: %s has an older value", key);
    }
    if (!all_with && !all_without) fail("half: a part of the last transaction is there");
}

// Opens a store, compares it, and goes on working with it. What is committed after recovery has to
// be there when the store is opened again, and again after a checkpoint.
static void check(void) {
    struct promise p = read_promise();
    struct store s;
    store_open(&s);
    compare(&s.map, &p);
    char token[48];
    snprintf(token, sizeof token, "%llux40", (unsigned long long)s.sequence);
    struct pair probe = pair_of("probe", expand(token));
    commit(&s, &probe, 1);
    for (int turn = 0; turn < 2; turn++) {
        store_close(&s);
        store_open(&s);
        if (!same(map_get(&s.map, "probe"), probe.value))
            fail("lost: what was committed after recovery is gone");
        compare(&s.map, &p);
        if (!turn) checkpoint(&s);
    }
    store_close(&s);
}

int main(int count, char **words) {
    if (count > 2 && !strcmp(words[1], "--bug")) {
        for (planted = 0; planted < bug_count && strcmp(bugs[planted].name, words[2]);) planted++;
        if (planted == bug_count) fail("unknown bug %s, see `leaky bugs`", words[2]);
        count -= 2, words += 2;
    }
    const char *verb = count > 1 ? words[1] : "";
    if (!strcmp(verb, "run") && count == 4)
        run((unsigned)atoi(words[2]), strtoull(words[3], NULL, 10));
    else if (!strcmp(verb, "check"))
        check();
    else if (!strcmp(verb, "bugs"))
        for (int i = 0; i < bug_count; i++)
            printf("%-22s %s (%s)\n", bugs[i].name, bugs[i].what, bugs[i].source);
    else
        fail("usage: leaky [--bug NAME] run TRANSACTIONS SEED | check, or leaky bugs");
    return 0;
}
