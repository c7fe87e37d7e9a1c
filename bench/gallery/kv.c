// Loads LMDB or WiredTiger in the current directory and updates it, as the row of the gallery says.
//
//   kv lmdb|wiredtiger RECORDS UPDATES GROUP CACHE_MIB
//
// A record has a key of 16 bytes and a value of 112, half of it random and half zero. Records are
// loaded in a scattered order, 1,000 a commit; then UPDATES uniformly chosen ones are overwritten,
// GROUP a commit, each commit durable. bench/src/bin/gallery.rs writes the same records.
// Tells $TREERING_ACKS the bytes so far and when it has loaded; prints how many commits the updates
// were, and a checksum of all records.

#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wiredtiger.h>

enum { KEY = 16, VALUE = 112, LOAD_GROUP = 1000 };
typedef unsigned char byte;

struct engine {
    void (*open)(uint64_t cache_mib);
    void (*begin)(void);
    void (*put)(const byte *key, const byte *value);
    void (*commit)(void);
    void (*scan)(void (*visit)(const byte *, size_t)); // every key and value
    void (*close)(void);
};

static void check(int error, const char *what, const char *why) {
    if (error != 0) {
        fprintf(stderr, "kv: %s: %s\n", what, why);
        exit(1);
    }
}

// LMDB of the distribution: its file is mapped, and written by pwrite.

#define LMDB(call) check(call, #call, "LMDB failed")
static MDB_env *env;
static MDB_txn *txn;
static MDB_dbi dbi;

static void lmdb_open(uint64_t cache_mib) {
    (void)cache_mib; // LMDB has none: the kernel's page cache is its cache.
    LMDB(mdb_env_create(&env));
    LMDB(mdb_env_set_mapsize(env, (size_t)4 << 30));
    LMDB(mdb_env_open(env, ".", 0, 0644));
    LMDB(mdb_txn_begin(env, NULL, 0, &txn));
    LMDB(mdb_dbi_open(txn, NULL, 0, &dbi));
    LMDB(mdb_txn_commit(txn));
}
static void lmdb_begin(void) { LMDB(mdb_txn_begin(env, NULL, 0, &txn)); }
static void lmdb_put(const byte *key, const byte *value) {
    MDB_val k = {KEY, (void *)key}, v = {VALUE, (void *)value};
    LMDB(mdb_put(txn, dbi, &k, &v, 0));
}
static void lmdb_commit(void) { LMDB(mdb_txn_commit(txn)); }
static void lmdb_scan(void (*visit)(const byte *, size_t)) {
    MDB_cursor *cursor;
    MDB_val k, v;
    LMDB(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
    LMDB(mdb_cursor_open(txn, dbi, &cursor));
    while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
        visit(k.mv_data, k.mv_size);
        visit(v.mv_data, v.mv_size);
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}
static void lmdb_close(void) { mdb_env_close(env); }

// WiredTiger of the distribution: leaf pages of 8 KiB as in the B⁻-tree paper, a log.

#define WT(call) check(call, #call, "WiredTiger failed")
static WT_CONNECTION *connection;
static WT_SESSION *session;
static WT_CURSOR *records;

static void wt_open(uint64_t cache_mib) {
    char config[256];
    snprintf(config, sizeof config,
             "create,cache_size=%" PRIu64 "M,log=(enabled,file_max=16M),"
             "checkpoint=(log_size=64M),transaction_sync=(enabled,method=fsync)",
             cache_mib);
    WT(wiredtiger_open(".", NULL, config, &connection));
    WT(connection->open_session(connection, NULL, NULL, &session));
    WT(session->create(session, "table:records",
                       "key_format=u,value_format=u,leaf_page_max=8K,internal_page_max=8K"));
    WT(session->open_cursor(session, "table:records", NULL, NULL, &records));
}
static void wt_begin(void) { WT(session->begin_transaction(session, NULL)); }
static void wt_put(const byte *key, const byte *value) {
    WT_ITEM k = {.data = key, .size = KEY}, v = {.data = value, .size = VALUE};
    records->set_key(records, &k);
    records->set_value(records, &v);
    WT(records->insert(records));
}
static void wt_commit(void) { WT(session->commit_transaction(session, NULL)); }
static void wt_scan(void (*visit)(const byte *, size_t)) {
    WT_ITEM k, v;
    WT(records->reset(records));
    while (records->next(records) == 0) {
        WT(records->get_key(records, &k));
        WT(records->get_value(records, &v));
        visit(k.data, k.size);
        visit(v.data, v.size);
    }
}
static void wt_close(void) { WT(connection->close(connection, NULL)); }

static const struct engine ENGINES[] = {
    {lmdb_open, lmdb_begin, lmdb_put, lmdb_commit, lmdb_scan, lmdb_close},
    {wt_open, wt_begin, wt_put, wt_commit, wt_scan, wt_close},
};

// The records. splitmix64, as in gallery.rs.

static uint64_t seed = 1;
static uint64_t draw(void) {
    uint64_t x = seed += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static const struct engine *engine;
static uint64_t put_bytes;

static void put(uint64_t record) {
    char key[32];
    byte value[VALUE] = {0};
    snprintf(key, sizeof key, "%016" PRIu64, record);
    for (int i = 0; i < VALUE / 2; i += 8) {
        uint64_t random = draw();
        memcpy(value + i, &random, 8);
    }
    engine->put((byte *)key, value);
    put_bytes += KEY + VALUE;
}

static void tell(const char *line) {
    const char *path = getenv("TREERING_ACKS");
    FILE *acks = path ? fopen(path, "a") : NULL;
    if (acks != NULL) {
        fprintf(acks, "user_bytes %" PRIu64 "\n%s", put_bytes, line);
        fclose(acks);
    }
}

static uint64_t sum = 0xcbf29ce484222325; // FNV-1a
static void add(const byte *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) sum = (sum ^ bytes[i]) * 0x100000001b3;
}

int main(int argc, char **argv) {
    int is_wt = argc == 6 && strcmp(argv[1], "wiredtiger") == 0;
    if (!is_wt && (argc != 6 || strcmp(argv[1], "lmdb") != 0)) {
        fprintf(stderr, "usage: kv lmdb|wiredtiger RECORDS UPDATES GROUP CACHE_MIB\n");
        return 2;
    }
    uint64_t n = strtoull(argv[2], NULL, 10), updates = strtoull(argv[3], NULL, 10);
    uint64_t group = strtoull(argv[4], NULL, 10);
    engine = &ENGINES[is_wt];
    engine->open(strtoull(argv[5], NULL, 10));
    for (uint64_t i = 0; i < n;) {
        engine->begin();
        for (uint64_t g = 0; g < LOAD_GROUP && i < n; g++, i++) put(i * 2654435761 % n);
        engine->commit();
    }
    tell("loaded\n");
    for (uint64_t i = 0; i < updates;) {
        engine->begin();
        for (uint64_t g = 0; g < group && i < updates; g++, i++) put(draw() % n);
        engine->commit();
    }
    tell("");
    engine->scan(add);
    printf("commits %" PRIu64 "\nchecksum %016" PRIx64 "\n", (updates + group - 1) / group, sum);
    engine->close();
    return 0;
}
