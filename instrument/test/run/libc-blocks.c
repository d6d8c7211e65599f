// Blocks that functions of libc make or end, as the program accounts for them. Of what the program itself calls,
// malloc and free are recorded as ever.
// RUN: %clang -O1 -fno-builtin -c %S/../Inputs/own_malloc.c -o %t.malloc.o
// RUN: %memlode-c -O0 -I%S/../Inputs -c %s -o %t.o && %link %t.o %t.malloc.o -o %t
// RUN: env MEMLODE_TEST_PRINT=a %t >%t.txt && %python %S/../Inputs/own_blocks.py %t.txt
// RUN: %memlode-c -O2 -D_FORTIFY_SOURCE=2 -I%S/../Inputs -c %s -o %t.o && %link %t.o %t.malloc.o -o %t
// RUN: env MEMLODE_TEST_PRINT=a %t >%t.txt && %python %S/../Inputs/own_blocks.py %t.txt
// RUN: %memlode-cxx -x c++ -O2 -I%S/../Inputs -c %s -o %t.o && %link %t.o %t.malloc.o -o %t
// RUN: env MEMLODE_TEST_PRINT=a %t >%t.txt && %python %S/../Inputs/own_blocks.py %t.txt
// Half of the functions on their dormant side.
// RUN: env MEMLODE_TEST_TOGGLE=1 MEMLODE_TEST_PRINT=a %t >%t.txt && %python %S/../Inputs/own_blocks.py %t.txt
// RUN: env MEMLODE_FIDELITY=source %memlode-c -O2 -I%S/../Inputs -c %s -o %t.o && %link %t.o %t.malloc.o -o %t
// RUN: env MEMLODE_TEST_PRINT=a %t >%t.txt && %python %S/../Inputs/own_blocks.py %t.txt
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -I%S/../Inputs -c %s -o %t.o && %link %t.o %t.malloc.o -o %t && %t
#define _GNU_SOURCE
#ifdef __cplusplus
extern "C" {
#endif
#include "own_malloc.h"
#ifdef __cplusplus
}
#endif

#include <argz.h>
#include <dirent.h>
#include <envz.h>
#include <execinfo.h>
#include <glob.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include <wordexp.h>

#define APART __attribute__((noinline)) static

APART void end(void *base) {
  gone(base);
  free(base);
}

// A block that may have moved or grown.
static void *held;
static size_t held_bytes;
APART void now(void *base, size_t bytes) {
  if (base == held && bytes == held_bytes)
    return;
  if (held)
    gone(held);
  if (base)
    given(base, bytes);
  held = base;
  held_bytes = bytes;
}

APART int formatted(char **to, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int length = vasprintf(to, format, list);
  va_end(list);
  return length;
}

APART void prints(void) {
  char *all[4];
  for (int i = 0; i < 3; i++)
    if (asprintf(&all[i], "value %d", 1 << 10 * i) > 0)
      given(all[i], strlen(all[i]) + 1);
  if (formatted(&all[3], "%s %s", all[0], all[1]) > 0)
    given(all[3], strlen(all[3]) + 1);
  for (int i = 0; i < 4; i++)
    end(all[i]);
}

APART void lines(void) {
  char text[600], *line = NULL;
  size_t room = 0;
  memset(text, 'x', sizeof text);
  text[10] = text[20] = text[400] = '\n';
  FILE *file = fmemopen(text, sizeof text, "r");
  while (getline(&line, &room, file) > 0)
    now(line, room);
  now(line, room);
  rewind(file);
  while (getdelim(&line, &room, 'y', file) > 0)
    now(line, room);
  fclose(file);
  now(NULL, 0);
  free(line);
}

APART void streams(void) {
  char *text;
  size_t length;
  FILE *file = open_memstream(&text, &length);
  fputs("some", file);
  fflush(file);
  now(text, length + 1);
  fflush(file);
  now(text, length + 1);
  for (int i = 0; i < 1000; i++)
    fprintf(file, "%d words ", i);
  fclose(file);
  now(text, length + 1);
  now(NULL, 0);
  free(text);
  wchar_t *wide;
  file = open_wmemstream(&wide, &length);
  fputws(L"wide", file);
  fclose(file);
  given(wide, (length + 1) * sizeof *wide);
  end(wide);
}

APART void strings(void) {
  char room[PATH_MAX], *all[] = {realpath("/usr/../usr", NULL), getcwd(NULL, 0), canonicalize_file_name("/usr"),
                                 get_current_dir_name(), tempnam("/tmp", "x")};
  for (int i = 0; i < 5; i++)
    given(all[i], strlen(all[i]) + 1);
  if (realpath("/usr", room) != room || getcwd(room, sizeof room) != room || realpath("/none", NULL))
    abort();
  for (int i = 0; i < 5; i++)
    end(all[i]);
  wchar_t *wide = wcsdup(L"wide");
  given(wide, 5 * sizeof *wide);
  end(wide);
  void *calls[8];
  int count = backtrace(calls, 8);
  char **names = backtrace_symbols(calls, count);
  given(names, (size_t)count * sizeof *names);
  end(names);
}

APART void files(void) {
  struct dirent **list;
  int count = scandir("/usr", &list, NULL, alphasort);
  given(list, (size_t)count * sizeof *list);
  for (int i = 0; i < count; i++)
    given(list[i], offsetof(struct dirent, d_name) + strlen(list[i]->d_name) + 1);
  for (int i = 0; i < count; i++)
    end(list[i]);
  end(list);

  glob_t found;
  if (glob("/usr/*", 0, NULL, &found) == 0) {
    given(found.gl_pathv, (found.gl_pathc + 1) * sizeof *found.gl_pathv);
    for (size_t i = 0; i < found.gl_pathc; i++)
      given(found.gl_pathv[i], strlen(found.gl_pathv[i]) + 1);
    for (size_t i = 0; i < found.gl_pathc; i++)
      gone(found.gl_pathv[i]);
    gone(found.gl_pathv);
    globfree(&found);
  }
  wordexp_t words;
  words.we_offs = 2;
  if (wordexp("a /usr/* b", &words, WRDE_DOOFFS) == 0) {
    given(words.we_wordv, (words.we_offs + words.we_wordc + 1) * sizeof *words.we_wordv);
    for (size_t i = 0; i < words.we_wordc; i++)
      given(words.we_wordv[2 + i], strlen(words.we_wordv[2 + i]) + 1);
    for (size_t i = 0; i < words.we_wordc; i++)
      gone(words.we_wordv[2 + i]);
    gone(words.we_wordv);
    wordfree(&words);
  }
}

APART void network(void) {
  struct addrinfo hints, *list;
  memset(&hints, 0, sizeof hints);
  hints.ai_flags = AI_NUMERICHOST | AI_CANONNAME;
  if (getaddrinfo("127.0.0.1", "80", &hints, &list) == 0) {
    for (struct addrinfo *at = list; at; at = at->ai_next) {
      given(at, sizeof *at + at->ai_addrlen);
      if (at->ai_canonname)
        given(at->ai_canonname, strlen(at->ai_canonname) + 1);
    }
    for (struct addrinfo *at = list; at; at = at->ai_next) {
      if (at->ai_canonname)
        gone(at->ai_canonname);
      gone(at);
    }
    freeaddrinfo(list);
  }
  struct if_nameindex *names = if_nameindex();
  size_t count = 0;
  for (; names && names[count].if_name; count++)
    given(names[count].if_name, strlen(names[count].if_name) + 1);
  if (names) {
    given(names, (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++)
      gone(names[i].if_name);
    gone(names);
    if_freenameindex(names);
  }
  struct ifaddrs *own;
  if (getifaddrs(&own) == 0 && own) {
    given(own, sizeof *own);
    gone(own);
    freeifaddrs(own);
  }
}

APART void vectors(void) {
  char *vector = NULL, *const words[] = {(char *)"one", (char *)"two", NULL};
  size_t length = 0;
  if (argz_create(words, &vector, &length) != 0)
    abort();
  now(vector, length);
  argz_add(&vector, &length, "three");
  now(vector, length);
  argz_append(&vector, &length, "four", 5);
  now(vector, length);
  argz_insert(&vector, &length, vector, "zero");
  now(vector, length);
  argz_delete(&vector, &length, vector);
  now(vector, length);
  envz_add(&vector, &length, "five", "5");
  now(vector, length);
  while (vector) {
    argz_delete(&vector, &length, vector);
    now(vector, length);
  }
  now(NULL, 0);
  argz_create_sep("a:b:c", ':', &vector, &length);
  now(vector, length);
  now(NULL, 0);
  free(vector);
}

int main(void) {
  prints();
  lines();
  streams();
  strings();
  files();
  network();
  vectors();
  return 0;
}
