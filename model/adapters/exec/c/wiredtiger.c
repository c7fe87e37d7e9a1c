/* WiredTiger. Build: cc -O2 -o wiredtiger wiredtiger.c -lwiredtiger. Usage: wiredtiger [log [sync]]
 * `sync` takes a checkpoint; with `log` it flushes the log; with `log sync` each commit does. */
#include <wiredtiger.h>

#include "line.h"

/* Small, so that pages are evicted and the log has several files. */
#define CONFIG "create,cache_size=1MB,session_max=100"
#define LOG ",log=(enabled,file_max=100KB)"
#define SYNC ",transaction_sync=(enabled,method=fsync)"

/* A session with its cursor; the first is for calls outside of transactions. */
static struct place { unsigned long long number; WT_SESSION *session; WT_CURSOR *cursor; } at[65];
static WT_CONNECTION *conn;
static int logs, syncs, status;

static int ok(int rc) { return rc ? status = rc, 0 : 1; }

/* By default these go to standard output, which is for answers. */
static int quiet(WT_EVENT_HANDLER *h, WT_SESSION *s, const char *m) { return 0; }
static WT_EVENT_HANDLER handler = {.handle_message = quiet};

static int enter(struct place *p) {
  if (p->session) return 1;
  return ok(conn->open_session(conn, NULL, NULL, &p->session)) &&
         ok(p->session->create(p->session, "table:kv", "key_format=u,value_format=u")) &&
         ok(p->session->open_cursor(p->session, "table:kv", NULL, NULL, &p->cursor));
}

static struct place *find(unsigned long long number) {
  for (struct place *p = at;; p++) if (p->number == number) return p;
}

static void open_store(char *dir) {
  char config[256];
  *strchr(dir + 1, '"') = 0;
  snprintf(config, sizeof config, CONFIG "%s%s", logs ? LOG : "", syncs ? SYNC : "");
  if (ok(wiredtiger_open(dir + 1, &handler, config, &conn))) enter(&at[0]);
}

static void begin(unsigned long long number) {
  struct place *p = at + 1;
  while (p->number) p++;
  if (!enter(p)) return;
  p->number = number, ok(p->session->begin_transaction(p->session, "isolation=snapshot"));
}

static void end(unsigned long long number, int commits) {
  struct place *p = find(number);
  p->number = 0;
  ok(commits ? p->session->commit_transaction(p->session, NULL)
             : p->session->rollback_transaction(p->session, NULL));
}

static void set_key(WT_CURSOR *c, bytes key) {
  c->set_key(c, &(WT_ITEM){.data = key.at, .size = key.len});
}

static void put(WT_CURSOR *c, bytes key, bytes value) {
  set_key(c, key);
  if (value.at) c->set_value(c, &(WT_ITEM){.data = value.at, .size = value.len});
  int rc = value.at ? c->insert(c) : c->remove(c);
  if (rc != WT_NOTFOUND) ok(rc);
}

static void rows(WT_CURSOR *c, int back) {
  char *text = line_field(back ? "below" : "from");
  bytes bound = line_bytes(&text);
  unsigned long long limit = line_number("limit");
  WT_ITEM k, v;
  /* The empty key is below all keys. A cursor without a position goes to the first or last. */
  int side = back && !bound.at ? 0 : -1, rc = back && bound.at && !bound.len ? WT_NOTFOUND : 0;
  if (bound.len) set_key(c, bound), rc = c->search_near(c, &side);
  if (!rc && (back ? side >= 0 : side < 0)) rc = back ? c->prev(c) : c->next(c);
  printf(",\"rows\":[");
  for (unsigned long long n = 0; !rc && n < limit; n++) {
    c->get_key(c, &k);
    c->get_value(c, &v);
    if (n) putchar(',');
    line_hex(k.data, k.size);
    putchar(',');
    line_hex(v.data, v.size);
    rc = back ? c->prev(c) : c->next(c);
  }
  putchar(']');
  if (rc != WT_NOTFOUND) ok(rc);
}

static void batch(struct place *p) {
  if (!ok(p->session->begin_transaction(p->session, NULL))) return;
  char *text = line_field("changes");
  bytes key, value;
  while (line_change(&text, &key, &value)) put(p->cursor, key, value);
  if (status) p->session->rollback_transaction(p->session, NULL);
  else ok(p->session->commit_transaction(p->session, NULL));
}

static void run(struct place *p) {
  WT_CURSOR *c = p->cursor;
  char *text = line_field("key");
  bytes key = line_bytes(&text);
  text = line_field("value");
  if (line_is("get")) {
    WT_ITEM v;
    set_key(c, key);
    int rc = c->search(c);
    printf(",\"value\":");
    if (rc || !ok(c->get_value(c, &v))) printf("null"); else line_hex(v.data, v.size);
    if (rc != WT_NOTFOUND) ok(rc);
  } else if (line_is("put") || line_is("delete")) put(c, key, line_bytes(&text));
  else if (line_is("batch")) batch(p);
  else rows(c, line_is("scan-back"));
  c->reset(c);
}

int main(int argc, char **argv) {
  logs = argc > 1 && !strcmp(argv[1], "log");
  syncs = logs && argc > 2 && !strcmp(argv[2], "sync");
  if (!freopen("/dev/null", "w", stderr)) return 1; /* Answers say why. */
  while (line_read()) {
    unsigned long long number = line_number("tx");
    WT_SESSION *s = at[0].session;
    status = 0;
    printf("{\"id\":%llu", line_id());
    if (line_is("hello"))
      printf(",\"protocol\":\"treering.exec/1\",\"name\":\"wiredtiger%s\",\"durable\":\"%s\","
             "\"isolation\":\"snapshot\",\"has\":[\"scan-back\",\"batch\",\"sync\","
             "\"transactions\",\"snapshot\"],\"max_key\":1000,\"max_record\":16384,"
             "\"empty_key\":false",
             logs ? "-log" : "", syncs ? "return" : "sync");
    else if (line_is("open")) open_store(line_field("dir"));
    else if (line_is("close")) memset(at, 0, sizeof at), ok(conn->close(conn, NULL));
    else if (line_is("sync")) ok(logs ? s->log_flush(s, "sync=on") : s->checkpoint(s, NULL));
    else if (line_is("crash")) _exit(1);
    else if (line_is("begin") || line_is("snapshot")) begin(number);
    else if (line_is("commit") || line_is("abort")) end(number, line_is("commit"));
    else run(find(number));
    int over = status == WT_ROLLBACK;
    const char *kind = over ? "conflict" : "refused", *why = wiredtiger_strerror(status);
    if (status) printf(",\"error\":\"%s\",\"why\":\"%s\"", kind, why);
    if (over && number) end(number, 0);
    puts("}");
  }
  return 0;
}
