/* LMDB. Build: cc -O2 -o lmdb lmdb.c -llmdb. Usage: lmdb [nosync|nometasync|mapasync|writemap]...
 * With one of the first three, a commit is durable once `sync` has returned. */
#include <lmdb.h>

#include "line.h"

static MDB_env *env;
static MDB_dbi db;
static unsigned flags;
static const char *why;
static int status;

static int ok(int rc) {
  if (rc) status = rc, why = mdb_strerror(rc);
  return rc == MDB_SUCCESS;
}

static MDB_val val(bytes b) {
  MDB_val v = {b.len, b.at};
  return v;
}

/* Transactions by number; LMDB has one writer at a time, and would wait for it forever. */
static struct { unsigned long long number; MDB_txn *txn; int writes; } open_tx[64];

static int writer(void) {
  for (int i = 0; i < 64; i++)
    if (open_tx[i].txn && open_tx[i].writes) return 1;
  return 0;
}

static MDB_txn **find(unsigned long long number) {
  for (int i = 0; i < 64; i++)
    if (open_tx[i].number == number && (!number || open_tx[i].txn)) return &open_tx[i].txn;
  return NULL;
}

static void begin(unsigned long long number, int writes) {
  if (writes && writer()) { why = "another transaction writes"; status = -1; return; }
  for (int i = 0; i < 64; i++) {
    if (open_tx[i].txn) continue;
    open_tx[i].number = number;
    open_tx[i].writes = writes;
    ok(mdb_txn_begin(env, NULL, writes ? 0 : MDB_RDONLY, &open_tx[i].txn));
    return;
  }
  why = "too many transactions", status = -2;
}

static void open_store(char *dir) {
  char *end = strchr(dir + 1, '"');
  *end = 0;
  MDB_txn *txn;
  if (ok(mdb_env_create(&env)) && ok(mdb_env_set_mapsize(env, (size_t)1 << 30)) &&
      ok(mdb_env_open(env, dir + 1, flags | MDB_NOTLS, 0644)) &&
      ok(mdb_txn_begin(env, NULL, 0, &txn)) && ok(mdb_dbi_open(txn, NULL, MDB_CREATE, &db)))
    ok(mdb_txn_commit(txn));
}

static void put(MDB_txn *txn, bytes key, bytes value) {
  MDB_val k = val(key), v = val(value);
  int rc = value.at ? mdb_put(txn, db, &k, &v, 0) : mdb_del(txn, db, &k, NULL);
  if (rc != MDB_NOTFOUND) ok(rc);
}

static void rows(MDB_txn *txn, int back) {
  char *text = line_field(back ? "below" : "from");
  bytes bound = line_bytes(&text);
  unsigned long long limit = line_number("limit");
  MDB_cursor *cursor;
  MDB_val k = val(bound), v;
  if (!ok(mdb_cursor_open(txn, db, &cursor))) return;
  printf(",\"rows\":[");
  /* The empty key is below all keys, and LMDB has none. */
  MDB_cursor_op first = bound.len ? MDB_SET_RANGE : back ? MDB_LAST : MDB_FIRST;
  int rc = back && bound.at && !bound.len ? MDB_NOTFOUND : mdb_cursor_get(cursor, &k, &v, first);
  if (back && bound.len) rc = mdb_cursor_get(cursor, &k, &v, rc ? MDB_LAST : MDB_PREV);
  for (unsigned long long n = 0; !rc && n < limit; n++) {
    if (n) putchar(',');
    line_hex(k.mv_data, k.mv_size);
    putchar(',');
    line_hex(v.mv_data, v.mv_size);
    rc = mdb_cursor_get(cursor, &k, &v, back ? MDB_PREV : MDB_NEXT);
  }
  putchar(']');
  mdb_cursor_close(cursor);
}

static void run(MDB_txn *txn) {
  char *text = line_field("key");
  bytes key = line_bytes(&text);
  text = line_field("value");
  if (line_is("get")) {
    MDB_val k = val(key), v;
    int rc = mdb_get(txn, db, &k, &v);
    printf(",\"value\":");
    if (rc) printf("null"); else line_hex(v.mv_data, v.mv_size);
    if (rc != MDB_NOTFOUND) ok(rc);
  } else if (line_is("put") || line_is("delete")) {
    put(txn, key, line_bytes(&text));
  } else if (line_is("batch")) {
    bytes value;
    text = line_field("changes");
    while (line_change(&text, &key, &value)) put(txn, key, value);
  } else {
    rows(txn, line_is("scan-back"));
  }
}

int main(int argc, char **argv) {
  static const struct { const char *name; unsigned flag; } names[] = {
    {"nosync", MDB_NOSYNC}, {"nometasync", MDB_NOMETASYNC}, {"mapasync", MDB_MAPASYNC},
    {"writemap", MDB_WRITEMAP}};
  for (int i = 1; i < argc; i++)
    for (int n = 0; n < 4; n++)
      if (!strcmp(argv[i], names[n].name)) flags |= names[n].flag;
  int nosync = (flags & (MDB_NOSYNC | MDB_NOMETASYNC | MDB_MAPASYNC)) != 0;
  while (line_read()) {
    unsigned long long number = line_number("tx");
    status = 0;
    printf("{\"id\":%llu", line_id());
    if (line_is("hello"))
      printf(",\"protocol\":\"treering.exec/1\",\"name\":\"lmdb\",\"durable\":\"%s\","
             "\"isolation\":\"serializable\",\"has\":["
             "\"scan-back\",\"batch\",\"sync\",\"transactions\",\"snapshot\",\"processes\"],"
             "\"max_key\":511,\"max_record\":16384,\"empty_key\":false",
             nosync ? "sync" : "return");
    else if (line_is("open")) open_store(line_field("dir"));
    else if (line_is("close")) mdb_env_close(env);
    else if (line_is("sync")) ok(mdb_env_sync(env, 1));
    else if (line_is("crash")) _exit(1);
    else if (line_is("begin") || line_is("snapshot")) begin(number, line_is("begin"));
    else if (line_is("commit")) { MDB_txn **t = find(number); ok(mdb_txn_commit(*t)); *t = NULL; }
    else if (line_is("abort")) { MDB_txn **t = find(number); mdb_txn_abort(*t); *t = NULL; }
    else if (number) run(*find(number));
    else {
      MDB_txn *txn;
      int reads = line_is("get") || line_field("limit");
      if (!reads && writer()) why = "another transaction writes", status = -1;
      else if (ok(mdb_txn_begin(env, NULL, reads ? MDB_RDONLY : 0, &txn))) {
        run(txn);
        if (status || reads) mdb_txn_abort(txn); else ok(mdb_txn_commit(txn));
      }
    }
    const char *kind = status == -1 ? "conflict" : "refused";
    if (status) printf(",\"error\":\"%s\",\"why\":\"%s\"", kind, why);
    puts("}");
  }
  return 0;
}
