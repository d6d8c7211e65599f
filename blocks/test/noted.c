// What the library notes is what a program allocated, in each of its threads and processes, with
// the calls.
//
//   noted LIBRARY     starts itself with the library, and compares the notes with what it did
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memlode_format.h"

enum { THREADS = 4, ROUNDS = 3000, CHILDREN = 8, CHILD_ROUNDS = 50, LEAST = 4096, OUTER = 77777 };

static void fail(const char *why, unsigned long found, unsigned long expected) {
  fprintf(stderr, "noted: %s: %lu, expected %lu\n", why, found, expected);
  exit(1);
}

// ---- the program that allocates ----

// Two calls, whose return addresses the other side looks for.
static uint64_t returns[2];
static __attribute__((noinline)) void *inner(size_t bytes) {
  returns[0] = (uint64_t)(uintptr_t)__builtin_return_address(0);
  void *block = malloc(bytes);
  __asm__ volatile("" : : "r"(block) : "memory");
  return block;
}
static __attribute__((noinline)) void *outer(size_t bytes) {
  returns[1] = (uint64_t)(uintptr_t)__builtin_return_address(0);
  void *block = inner(bytes);
  __asm__ volatile("" : : "r"(block) : "memory");
  return block;
}

// In a section of its own, whose ends the linker names: the other side knows its calls by them.
#define OWN_PLACE __attribute__((noinline, section("allocations")))
extern const char __start_allocations[], __stop_allocations[];

static OWN_PLACE void *allocate(void *argument) {
  size_t rounds = *(size_t *)argument;
  for (size_t at = 0; at < rounds; at++) {
    // 5 blocks taken, of which one is resized, and one that is too small for a note.
    void *blocks[] = {malloc(LEAST + at), calloc(LEAST, 2), aligned_alloc(64, 8192), malloc(64), NULL};
    if (posix_memalign(&blocks[4], 4096, 4096) != 0)
      abort();
    blocks[0] = realloc(blocks[0], 3 * LEAST + at);
    for (size_t one = 0; one < sizeof(blocks) / sizeof(*blocks); one++) {
      memset(blocks[one], 1, 64);
      free(blocks[one]);
    }
  }
  return NULL;
}

static _Atomic unsigned long maps;
static void handler(int signal) {
  (void)signal;
  void *memory = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED)
    munmap(memory, 1 << 16);
  maps++;
}

static int work(void) {
  // What waits for a lock that nobody gives back ends here.
  alarm(100);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGPROF, &action, NULL);
  struct itimerval often = {{0, 500}, {0, 500}};
  setitimer(ITIMER_PROF, &often, NULL);
  pthread_t threads[THREADS];
  size_t rounds = ROUNDS, child_rounds = CHILD_ROUNDS;
  for (int at = 0; at < THREADS; at++)
    pthread_create(&threads[at], NULL, allocate, &rounds);
  for (int at = 0; at < CHILDREN; at++) {
    pid_t child = fork();
    if (child == 0) {
      allocate(&child_rounds);
      _exit(0);
    }
    int status = 1;
    while (waitpid(child, &status, 0) < 0)
      ;
    if (status != 0)
      return 1;
  }
  for (int at = 0; at < THREADS; at++)
    pthread_join(threads[at], NULL);
  free(outer(OUTER));
  printf("%lx %lx\n", returns[0], returns[1]);
  return 0;
}

// ---- the side that reads ----

static uint64_t turned(uint64_t value, unsigned by) { return value << by | value >> (64 - by); }

static uint64_t seal(const struct memlode_block_note *note, uint64_t number) {
  uint64_t last = (uint64_t)note->pid << 32 | (uint32_t)note->kind << 16 | note->path;
  uint64_t all = note->time ^ turned(note->address, 17) ^ turned(note->bytes, 34) ^ turned(last, 51);
  return all * 0x9E3779B97F4A7C15U + number + 1;
}

static char *memory;
static int file;

static void make_memory(void) {
  file = memfd_create("noted", 0);
  if (file < 0 || ftruncate(file, MEMLODE_BLOCK_NOTES_BYTES) != 0)
    fail("no memory", 0, 0);
  memory = mmap(NULL, MEMLODE_BLOCK_NOTES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  struct memlode_block_notes_header *header = (struct memlode_block_notes_header *)memory;
  *header = (struct memlode_block_notes_header){.magic = MEMLODE_MAGIC_BLOCK_NOTES,
                                                .version = MEMLODE_VERSION_BLOCK_NOTES,
                                                .least = LEAST,
                                                .reader = 1};
}

// Runs this program with the library; its line of output is left in `line`.
static pid_t run(const char *self, const char *library, char *line, size_t room) {
  int ends[2];
  if (pipe(ends) != 0)
    fail("no pipe", 0, 0);
  char name[64];
  snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(), file);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    setenv("LD_PRELOAD", library, 1);
    setenv("MEMLODE_BLOCKS", name, 1);
    execl(self, self, "work", NULL);
    _exit(127);
  }
  close(ends[1]);
  FILE *output = fdopen(ends[0], "r");
  if (output == NULL)
    fail("no output", 0, 0);
  if (fgets(line, (int)room, output) == NULL)
    line[0] = 0;
  fclose(output);
  int status = 1;
  waitpid(child, &status, 0);
  if (status != 0)
    fail("status", (unsigned long)status, 0);
  return child;
}

// Blocks that were taken and not given back, by process and address: few at a time.
static struct {
  uint32_t pid;
  uint64_t address;
} alive[1 << 10];
static unsigned alive_count;

static bool give_back(const struct memlode_block_note *note) {
  for (unsigned at = 0; at < alive_count; at++) {
    if (alive[at].pid == note->pid && alive[at].address == note->address) {
      alive[at] = alive[--alive_count];
      return true;
    }
  }
  return false;
}

// Counts of a process's notes, and of those of its children.
struct counts {
  unsigned long taken, freed;
};

static void count_notes(uint32_t program, const uint64_t *outwards, struct counts *own,
                        struct counts *others) {
  const struct memlode_block_notes_header *header = (const struct memlode_block_notes_header *)memory;
  const void *first_note = memory + MEMLODE_BLOCK_NOTES_FIRST_NOTE_OFFSET;
  const void *first_path = memory + MEMLODE_BLOCK_NOTES_FIRST_PATH_OFFSET;
  unsigned outer_found = 0;
  for (uint64_t number = 0; number < header->head; number++) {
    const struct memlode_block_note *note = (const struct memlode_block_note *)first_note + number;
    if (note->seal != seal(note, number))
      fail("the seal of a note", number, note->seal);
    struct counts *of = note->pid == program ? own : others;
    if (note->kind == MEMLODE_BLOCK_NOTE_FREED)
      of->freed += give_back(note);
    if (note->kind != MEMLODE_BLOCK_NOTE_TAKEN)
      continue;
    const struct memlode_block_path *path = (const struct memlode_block_path *)first_path + note->path;
    bool is_outer = note->bytes == OUTER;
    outer_found += is_outer && path->calls > 3 && path->at[1] == outwards[0] && path->at[2] == outwards[1];
    if (path->at[0] < (uint64_t)(uintptr_t)__start_allocations ||
        path->at[0] > (uint64_t)(uintptr_t)__stop_allocations)
      continue;
    if (give_back(note))
      fail("a block was taken twice", number, 0);
    if (alive_count == sizeof(alive) / sizeof(*alive))
      fail("blocks are not given back", alive_count, 0);
    alive[alive_count].pid = note->pid;
    alive[alive_count++].address = note->address;
    of->taken++;
  }
  if (outer_found != 1)
    fail("blocks with the calls of outer", outer_found, 1);
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "work") == 0)
    return work();
  make_memory();
  char line[256];
  pid_t program = run(words[0], words[1], line, sizeof(line));
  char *end = line;
  uint64_t outwards[2];
  outwards[0] = strtoull(line, &end, 16);
  outwards[1] = strtoull(end, &end, 16);
  const struct memlode_block_notes_header *header = (const struct memlode_block_notes_header *)memory;
  if (header->lost != 0 || header->head > MEMLODE_BLOCK_NOTES_NOTES)
    fail("notes that are lost", header->lost, 0);
  struct counts own = {0, 0}, others = {0, 0};
  count_notes((uint32_t)program, outwards, &own, &others);
  struct counts expected[] = {{5UL * THREADS * ROUNDS, 5UL * THREADS * ROUNDS},
                              {5UL * CHILDREN * CHILD_ROUNDS, 5UL * CHILDREN * CHILD_ROUNDS}};
  struct counts *found[] = {&own, &others};
  for (int at = 0; at < 2; at++) {
    if (found[at]->taken != expected[at].taken)
      fail("blocks that were taken", found[at]->taken, expected[at].taken);
    if (found[at]->freed != expected[at].freed)
      fail("blocks that were given back", found[at]->freed, expected[at].freed);
  }
  return 0;
}
