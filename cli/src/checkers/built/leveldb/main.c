// Opens a LevelDB store with paranoid checks and prints all its pairs, checksums verified.

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>

static void word(const char *bytes, size_t len, char end) {
  if (!len) putchar('-');
  for (size_t i = 0; i < len; i++) printf("%02x", (unsigned char)bytes[i]);
  putchar(end);
}

static void sound(char *error) {
  if (!error) return;
  fprintf(stderr, "%s\n", error);
  exit(1);
}

int main(int argc, char **argv) {
  char *error = NULL;
  if (argc != 2) {
    printf("LevelDB %d.%d\n", leveldb_major_version(), leveldb_minor_version());
    return 0;
  }
  leveldb_options_t *options = leveldb_options_create();
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_t *db = leveldb_open(options, argv[1], &error);
  sound(error);
  leveldb_readoptions_t *reads = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(reads, 1);
  leveldb_iterator_t *at = leveldb_create_iterator(db, reads);
  for (leveldb_iter_seek_to_first(at); leveldb_iter_valid(at); leveldb_iter_next(at)) {
    size_t len;
    const char *key = leveldb_iter_key(at, &len);
    word(key, len, ' ');
    const char *value = leveldb_iter_value(at, &len);
    word(value, len, '\n');
  }
  leveldb_iter_get_error(at, &error);
  sound(error);
  leveldb_iter_destroy(at);
  leveldb_close(db);
  puts("end");
  return fflush(stdout) ? 1 : 0;
}
