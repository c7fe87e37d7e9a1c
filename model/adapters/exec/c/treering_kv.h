/* A key-value engine as a shared library, for `treering oracle --so FILE`; see docs/EXEC.md.
 * Generated from model/oracle/src/exec/so.rs. Every function but the first returns 0, or the number
 * of an error after which nothing has changed. */
#ifndef TREERING_KV_H
#define TREERING_KV_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes a record. Returns 0 to go on. The bytes are copied. */
typedef int (*treering_row)(void *context, const unsigned char *key, size_t key_len,
                            const unsigned char *value, size_t value_len);

/* A change of a batch. A value of NULL removes the key. */
typedef struct {
  const unsigned char *key;
  size_t key_len;
  const unsigned char *value;
  size_t value_len;
} treering_change;

/* The claims of docs/EXEC.md, as a JSON object. */
const char *treering_claims(void);

/* Opens the store in a folder, or makes one. */
int treering_open(const char *dir, void **store);

/* Calls `found` once with the record, if the key is there. */
int treering_get(void *store, const unsigned char *key, size_t key_len,
                 treering_row found, void *context);

/* Sets a key. */
int treering_put(void *store, const unsigned char *key, size_t key_len,
                 const unsigned char *value, size_t value_len);

/* Removes a key, if it is there. */
int treering_delete(void *store, const unsigned char *key, size_t key_len);

/* Calls `row` with each record at or above `bound`, ascending; if `back`, with each below it
 * (all if it is NULL), descending; until `row` returns something other than 0. */
int treering_scan(void *store, const unsigned char *bound, size_t bound_len, int back,
                  treering_row row, void *context);

/* Makes changes that take effect together. Only called if "batch" is claimed. */
int treering_batch(void *store, const treering_change *changes, size_t number);

/* Makes all writes so far durable. */
int treering_sync(void *store);

/* Closes the store. All its writes are then durable. */
int treering_close(void *store);

#ifdef __cplusplus
}
#endif

#endif
