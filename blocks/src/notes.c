// The memory that is shared with `memlode sample`: a table of call paths, and a ring of notes.
//
//   | header | paths[65535] | notes[262144] |
//
// Many threads of many processes write to the ring, and one reader takes notes out of it. A writer
// takes a number by moving `head` on, fills in the note of that number, and seals it; the reader
// takes a note once its seal fits, and moves `tail` on. Nobody waits: a note for which there is no
// room is counted, and a writer that dies between the two leaves a note that the reader gives up.
#include "blocks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  PAGE = 4096,
  // Another thread is always faster only if there are more threads than this.
  MOST_TRIES = 1000,
};

_Atomic size_t memlode_blocks_least;

static struct memlode_block_notes_header *header;
// The process's number, in a page that is zero in a child that has a copy of this memory.
static _Atomic uint32_t *own;
static _Atomic int state;
enum { UNDECIDED, DECIDING, DECIDED };
// Notes that are made in the middle of making one are those of a signal handler: they are left out.
static _Thread_local bool inside;

struct memlode_block_notes_header *memlode_blocks_header(void) { return header; }

bool memlode_blocks_are_noted(void) { return header != NULL; }

struct memlode_block_path *memlode_blocks_paths(void) {
  return (struct memlode_block_path *)((char *)header + MEMLODE_BLOCK_NOTES_FIRST_PATH_OFFSET);
}

static struct memlode_block_note *notes(void) {
  return (struct memlode_block_note *)((char *)header + MEMLODE_BLOCK_NOTES_FIRST_NOTE_OFFSET);
}

// Memory of this program's own, in which nothing is noted until a `memlode sample -p` finds it by
// its name among the program's open files.
static struct memlode_block_notes_header *waiting(void) {
  int file = memfd_create("memlode-blocks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0)
    return NULL;
  void *memory = MAP_FAILED;
  if (ftruncate(file, MEMLODE_BLOCK_NOTES_BYTES) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
    memory = mmap(NULL, MEMLODE_BLOCK_NOTES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    close(file);
    return NULL;
  }
  struct memlode_block_notes_header *made = memory;
  made->magic = MEMLODE_MAGIC_BLOCK_NOTES;
  made->version = MEMLODE_VERSION_BLOCK_NOTES;
  made->least = PAGE;
  return made;
}

// What was given may be anything: the name of a file that is gone, or another version's.
static struct memlode_block_notes_header *shared(const char *path) {
  int file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0)
    return NULL;
  struct stat stat;
  void *memory = MAP_FAILED;
  if (fstat(file, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size == MEMLODE_BLOCK_NOTES_BYTES)
    memory = mmap(NULL, MEMLODE_BLOCK_NOTES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    return NULL;
  struct memlode_block_notes_header *found = memory;
  if (found->magic != MEMLODE_MAGIC_BLOCK_NOTES || found->version != MEMLODE_VERSION_BLOCK_NOTES) {
    munmap(memory, MEMLODE_BLOCK_NOTES_BYTES);
    return NULL;
  }
  return found;
}

static void decide(void) {
  size_t least = SIZE_MAX;
  const char *path = getenv("MEMLODE_BLOCKS");
  struct memlode_block_notes_header *found = NULL;
  if (path != NULL)
    found = strcmp(path, "wait") == 0 ? waiting() : shared(path);
  void *page = found == NULL ? MAP_FAILED
                             : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED && madvise(page, PAGE, MADV_WIPEONFORK) == 0) {
    own = page;
    header = found;
    least = found->least < 1 ? 1 : found->least;
  }
  memlode_blocks_least = least;
}

void memlode_blocks_begin(void) {
  int expected = UNDECIDED;
  if (environ == NULL || !atomic_compare_exchange_strong(&state, &expected, DECIDING))
    return;
  int before = errno;
  // What this maps is no block of the program's.
  inside = true;
  decide();
  inside = false;
  errno = before;
  atomic_store(&state, DECIDED);
}

static uint32_t process(void) {
  uint32_t pid = atomic_load_explicit(own, memory_order_relaxed);
  if (pid == 0) {
    pid = (uint32_t)getpid();
    atomic_store_explicit(own, pid, memory_order_relaxed);
  }
  return pid;
}

static uint64_t turned(uint64_t value, unsigned by) { return value << by | value >> (64 - by); }

// A note is whole if its contents and number give its seal.
static uint64_t seal(const struct memlode_block_note *note, uint64_t number) {
  uint64_t last = (uint64_t)note->pid << 32 | (uint32_t)note->kind << 16 | note->path;
  uint64_t all = note->time ^ turned(note->address, 17) ^ turned(note->bytes, 34) ^ turned(last, 51);
  return all * 0x9E3779B97F4A7C15U + number + 1;
}

static void put(const struct memlode_block_note *note) {
  _Atomic uint64_t *head = (_Atomic uint64_t *)&header->head;
  const _Atomic uint64_t *tail = (const _Atomic uint64_t *)&header->tail;
  uint64_t number = atomic_load_explicit(head, memory_order_relaxed);
  for (int tries = 0;; tries++) {
    bool is_full = number - atomic_load_explicit(tail, memory_order_acquire) >= MEMLODE_BLOCK_NOTES_NOTES;
    if (is_full || tries == MOST_TRIES) {
      atomic_fetch_add_explicit((_Atomic uint64_t *)&header->lost, 1, memory_order_relaxed);
      return;
    }
    if (atomic_compare_exchange_weak(head, &number, number + 1))
      break;
  }
  struct memlode_block_note *to = &notes()[number % MEMLODE_BLOCK_NOTES_NOTES];
  uint64_t sealed = seal(note, number);
  to->time = note->time;
  to->address = note->address;
  to->bytes = note->bytes;
  to->pid = note->pid;
  to->kind = note->kind;
  to->path = note->path;
  atomic_store_explicit((_Atomic uint64_t *)&to->seal, sealed, memory_order_release);
}

void memlode_blocks_note(uint16_t kind, const void *address, size_t bytes, void *const *slot) {
  if (header == NULL || inside)
    return;
  if (atomic_load_explicit((const _Atomic uint32_t *)&header->reader, memory_order_relaxed) == 0)
    return;
  inside = true;
  int before = errno;
  struct timespec now = {0, 0};
  // The clock that samples are told to have.
  clock_gettime(CLOCK_MONOTONIC, &now);
  bool is_taken = kind == MEMLODE_BLOCK_NOTE_TAKEN || kind == MEMLODE_BLOCK_NOTE_MAPPED;
  struct memlode_block_note note = {
      .time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec,
      .address = (uint64_t)(uintptr_t)address,
      .bytes = bytes,
      .pid = process(),
      .kind = kind,
      .path = is_taken ? memlode_blocks_path(slot) : MEMLODE_BLOCK_NOTE_NO_PATH,
  };
  put(&note);
  errno = before;
  inside = false;
}
