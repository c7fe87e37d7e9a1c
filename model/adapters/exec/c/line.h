/* Reading and writing the lines of docs/EXEC.md, in C and C++, without a JSON library. A request
 * has no spaces and no escapes, so its fields can be searched for. One request at a time. */
#ifndef TREERING_LINE_H
#define TREERING_LINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char *at; size_t len; } bytes;

static char *line_text, *line_decoded;
static size_t line_room, line_used;

/* Reads the next request into line_text; 0 at the end of the input. Answers are written when no
 * more requests wait. */
static int line_read(void) {
  static char in[1 << 16];
  static size_t at, end;
  size_t len = 0;
  line_used = 0;
  for (;;) {
    if (at == end) {
      fflush(stdout);
      ssize_t n = read(0, in, sizeof in);
      if (n <= 0) return 0;
      at = 0;
      end = (size_t)n;
    }
    if (len + 1 >= line_room) {
      line_text = (char *)realloc(line_text, line_room = line_room ? 2 * line_room : 4096);
      line_decoded = (char *)realloc(line_decoded, line_room);
    }
    if (in[at] == '\n') break;
    line_text[len++] = in[at++];
  }
  at++;
  line_text[len] = 0;
  return 1;
}

/* The text after `"name":`, or NULL. */
static char *line_field(const char *name) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, ",\"%s\":", name);
  char *found = strstr(line_text, quoted);
  return found ? found + strlen(quoted) : NULL;
}

static unsigned long long line_number(const char *name) {
  char *text = line_field(name);
  return text ? strtoull(text, NULL, 10) : 0;
}

static unsigned long long line_id(void) { return strtoull(line_text + 6, NULL, 10); }

static int line_is(const char *op) {
  char *text = line_field("op");
  size_t len = strlen(op);
  return text && !strncmp(text + 1, op, len) && text[1 + len] == '"';
}

static int line_digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

/* Decodes the string at `*text`, and moves `*text` past it. `at` is NULL if there is none. */
static bytes line_bytes(char **text) {
  bytes found = {NULL, 0};
  if (!*text || **text != '"') return found;
  char *from = *text + 1;
  found.at = line_decoded + line_used;
  for (; *from != '"'; from += 2)
    found.at[found.len++] = (char)(line_digit(from[0]) << 4 | line_digit(from[1]));
  line_used += found.len;
  *text = from + 1;
  return found;
}

/* Decodes the next change of `changes`; 0 behind the last. `*text` is at the bracket, then behind a
 * change. `value->at` is NULL if the key is deleted. */
static int line_change(char **text, bytes *key, bytes *value) {
  if (*(*text)++ == ']' || **text != '"') return 0;
  *key = line_bytes(text);
  ++*text;
  *value = line_bytes(text);
  if (!value->at) *text += strlen("null");
  return 1;
}

static void line_hex(const void *at, size_t len) {
  static const char digits[] = "0123456789abcdef";
  const unsigned char *byte = (const unsigned char *)at;
  putc_unlocked('"', stdout);
  for (; len--; byte++) {
    putc_unlocked(digits[*byte >> 4], stdout);
    putc_unlocked(digits[*byte & 15], stdout);
  }
  putc_unlocked('"', stdout);
}

#endif
