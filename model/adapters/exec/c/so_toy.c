/* A sorted array in memory that is written to a file when it is closed, as a shared library.
 * Build: cc -O2 -shared -fPIC -o libtoy.so so_toy.c. With -DLOST_DELETE it has a bug. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "treering_kv.h"

typedef struct { unsigned char *key, *value; size_t key_len, value_len; } record;
typedef struct { char *file; record *records; size_t number, room; } table;

static int compare(const record *r, const unsigned char *key, size_t len) {
  int order = memcmp(r->key, key, r->key_len < len ? r->key_len : len);
  return order ? order : (r->key_len > len) - (r->key_len < len);
}

/* The place of the first record at or above the key. */
static size_t find(table *t, const unsigned char *key, size_t len) {
  size_t low = 0, high = t->number;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (compare(&t->records[middle], key, len) < 0) low = middle + 1; else high = middle;
  }
  return low;
}

static int is_at(table *t, size_t at, const unsigned char *key, size_t len) {
  return at < t->number && !compare(&t->records[at], key, len);
}

static unsigned char *copy(const unsigned char *bytes, size_t len) {
  unsigned char *made = malloc(len + 1);
  if (len) memcpy(made, bytes, len);
  return made;
}

const char *treering_claims(void) {
  return "{\"protocol\":\"treering.exec/1\",\"name\":\"array\",\"durable\":\"close\","
         "\"has\":[\"scan-back\",\"batch\"],\"max_key\":1000,\"max_record\":16384,"
          "\"empty_key\":true}";
}

int treering_put(void *store, const unsigned char *key, size_t key_len,
                 const unsigned char *value, size_t value_len) {
  table *t = store;
  size_t at = find(t, key, key_len);
  if (is_at(t, at, key, key_len)) {
    free(t->records[at].value);
  } else {
    if (t->number == t->room)
      t->records = realloc(t->records, (t->room = 2 * t->room + 16) * sizeof *t->records);
    memmove(&t->records[at + 1], &t->records[at], (t->number++ - at) * sizeof *t->records);
    t->records[at].key = copy(key, key_len);
    t->records[at].key_len = key_len;
  }
  t->records[at].value = copy(value, value_len);
  t->records[at].value_len = value_len;
  return 0;
}

int treering_delete(void *store, const unsigned char *key, size_t key_len) {
  table *t = store;
  size_t at = find(t, key, key_len);
#ifdef LOST_DELETE
  if (at % 5 == 3) return 0;
#endif
  if (!is_at(t, at, key, key_len)) return 0;
  free(t->records[at].key);
  free(t->records[at].value);
  memmove(&t->records[at], &t->records[at + 1], (--t->number - at) * sizeof *t->records);
  return 0;
}

int treering_get(void *store, const unsigned char *key, size_t key_len, treering_row found,
                 void *context) {
  table *t = store;
  size_t at = find(t, key, key_len);
  if (is_at(t, at, key, key_len))
    found(context, key, key_len, t->records[at].value, t->records[at].value_len);
  return 0;
}

int treering_scan(void *store, const unsigned char *bound, size_t len, int back, treering_row row,
                  void *context) {
  table *t = store;
  size_t at = back && !bound ? t->number : find(t, bound, len);
  while (back ? at-- > 0 : at < t->number) {
    record *r = &t->records[back ? at : at++];
    if (row(context, r->key, r->key_len, r->value, r->value_len)) break;
  }
  return 0;
}

int treering_batch(void *store, const treering_change *c, size_t number) {
  for (; number--; c++)
    c->value ? treering_put(store, c->key, c->key_len, c->value, c->value_len)
             : treering_delete(store, c->key, c->key_len);
  return 0;
}

int treering_sync(void *store) { (void)store; return 0; }

int treering_open(const char *dir, void **store) {
  table *t = calloc(1, sizeof *t);
  t->file = malloc(strlen(dir) + 7);
  sprintf(t->file, "%s/array", dir);
  *store = t;
  FILE *file = fopen(t->file, "rb");
  size_t lens[2];
  while (file && fread(lens, sizeof lens, 1, file)) {
    unsigned char *bytes = malloc(lens[0] + lens[1] + 1);
    if (fread(bytes, 1, lens[0] + lens[1], file) != lens[0] + lens[1]) return 1;
    treering_put(t, bytes, lens[0], bytes + lens[0], lens[1]);
    free(bytes);
  }
  if (file) fclose(file);
  return 0;
}

int treering_close(void *store) {
  table *t = store;
  FILE *file = fopen(t->file, "wb");
  if (!file) return 1;
  for (size_t i = 0; i < t->number; i++) {
    record *r = &t->records[i];
    fwrite(&r->key_len, sizeof r->key_len, 1, file);
    fwrite(&r->value_len, sizeof r->value_len, 1, file);
    fwrite(r->key, 1, r->key_len, file);
    fwrite(r->value, 1, r->value_len, file);
    free(r->key);
    free(r->value);
  }
  int failed = fclose(file);
  free(t->records);
  free(t->file);
  free(t);
  return failed;
}
