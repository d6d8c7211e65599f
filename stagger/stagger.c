// A library to preload: large blocks of the heap begin at different places of a page, instead of all at the
// same.
//
// glibc gives every block of some size pages of its own, and 16 bytes of header before the first byte: two
// such blocks agree in the low 12 address bits, and a loop that reads one and writes the other at the same
// index meets its own stores. Here each large block begins one colour further than the one before:
//
//   what glibc gives   |header|.................................................|
//   what we give       |header|  colour × 64 bytes  |...........................|
//
// A block of an alignment is moved by a multiple of that, so the promise holds; from one page on that moves
// it by pages, which is what counts where pages are huge (low 20 bits), and from 1 MiB on not at all.
//
//   MEMLODE_STAGGER_LEAST=BYTES      blocks that are large (65536)
//   MEMLODE_STAGGER_SHIFT=N:D,N:D    no colours; the Nth large block (from 0) of the process is moved by D
//   bytes MEMLODE_STAGGER_LIST=FILE        appends a line for each of the first large blocks: number, bytes,
//   and who asked
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

// glibc's own, which it exports for whoever replaces the public ones.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum {
  LINE = 64,
  PAGE = 4096,
  COLOURS = PAGE / LINE,
  // Odd, so that all colours come; 25/64 is near the golden ratio, so that neighbours lie far apart.
  STRIDE = 25,
  MEBIBYTE = 1 << 20,
  SHIFTS = 64,
  LISTED = 1000,
  FILTER = 1 << 16,
};

// A block that does not begin where glibc thinks.
struct moved {
  char *given;
  char *base;
  size_t bytes;
  struct moved *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct moved *table[1024];
// Blocks by the page of their address: those that were moved. `free` of anything else costs one look.
static _Atomic uint16_t filter[FILTER];
static _Atomic unsigned blocks;
static _Atomic unsigned colours;

static size_t least = 64 << 10;
static bool by_hand;
static struct {
  unsigned block;
  size_t bytes;
} shifts[SHIFTS];
static unsigned shift_count;
static const char *list;
static bool ready;

static void read_options(void) {
  const char *text = getenv("MEMLODE_STAGGER_LEAST");
  if (text != NULL) {
    size_t bytes = strtoull(text, NULL, 10);
    least = bytes < PAGE ? PAGE : bytes;
  }
  text = getenv("MEMLODE_STAGGER_SHIFT");
  by_hand = text != NULL;
  while (text != NULL && *text != 0 && shift_count < SHIFTS) {
    char *end;
    shifts[shift_count].block = (unsigned)strtoul(text, &end, 10);
    if (*end != ':')
      break;
    // What malloc promises holds: multiples of 16.
    shifts[shift_count].bytes = strtoull(end + 1, &end, 10) & ~(size_t)15;
    shift_count++;
    text = *end == ',' ? end + 1 : NULL;
  }
  list = getenv("MEMLODE_STAGGER_LIST");
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void begin(void) {
  read_options();
  pthread_atfork(before_fork, after_fork, after_fork);
  ready = true;
}

static unsigned slot(const char *given) { return (unsigned)((uintptr_t)given / PAGE * 2654435761U >> 4); }

static void remember(struct moved *moved) {
  unsigned at = slot(moved->given);
  pthread_mutex_lock(&lock);
  moved->next = table[at % 1024];
  table[at % 1024] = moved;
  pthread_mutex_unlock(&lock);
  atomic_fetch_add(&filter[at % FILTER], 1);
}

// Takes the block out of the table if `forget`. Null if it was not moved.
static struct moved *find(char *given, bool forget) {
  unsigned at = slot(given);
  if (atomic_load_explicit(&filter[at % FILTER], memory_order_relaxed) == 0)
    return NULL;
  struct moved *found = NULL;
  pthread_mutex_lock(&lock);
  for (struct moved **link = &table[at % 1024]; *link != NULL; link = &(*link)->next) {
    if ((*link)->given != given)
      continue;
    found = *link;
    if (forget)
      *link = found->next;
    break;
  }
  pthread_mutex_unlock(&lock);
  if (found != NULL && forget)
    atomic_fetch_sub(&filter[at % FILTER], 1);
  return found;
}

static void tell(unsigned number, size_t bytes, void *caller) {
  Dl_info info;
  char line[512];
  bool known = dladdr(caller, &info) != 0 && info.dli_fname != NULL;
  int length = snprintf(line, sizeof(line), "%u %zu %s %zx\n", number, bytes, known ? info.dli_fname : "?",
                        known ? (size_t)((char *)caller - (char *)info.dli_fbase) : 0);
  int file = open(list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return;
  if (length > 0 && write(file, line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1) < 0)
    list = NULL;
  close(file);
}

// Bytes by which a block moves, and whether it is large enough to.
static bool is_large(size_t bytes) { return ready && bytes >= least && bytes < SIZE_MAX / 2; }

static size_t distance(size_t align, size_t bytes, void *caller) {
  unsigned number = atomic_fetch_add(&blocks, 1);
  if (list != NULL && number < LISTED) {
    int before = errno;
    tell(number, bytes, caller);
    errno = before;
  }
  size_t by = 0;
  if (by_hand) {
    for (unsigned at = 0; at < shift_count; at++)
      by += shifts[at].block == number ? shifts[at].bytes : 0;
    return (by + align - 1) / align * align;
  }
  unsigned colour = atomic_fetch_add(&colours, 1) * STRIDE;
  if (align <= LINE)
    by = (size_t)(colour % COLOURS) * LINE;
  else if (align < PAGE)
    by = (size_t)(colour % (PAGE / align)) * align;
  else if (align < MEBIBYTE)
    by = (size_t)(colour % (MEBIBYTE / align) % COLOURS) * align;
  return by;
}

// A block of glibc's that begins `by` bytes before the one that is given.
static void *give(char *base, size_t by, size_t bytes) {
  if (base == NULL || by == 0)
    return base;
  struct moved *moved = __libc_malloc(sizeof(*moved));
  if (moved == NULL) {
    __libc_free(base);
    return NULL;
  }
  *moved = (struct moved){.given = base + by, .base = base, .bytes = bytes};
  remember(moved);
  return moved->given;
}

PUBLIC void *malloc(size_t bytes) {
  if (!is_large(bytes))
    return __libc_malloc(bytes);
  size_t by = distance(16, bytes, __builtin_return_address(0));
  return give(__libc_malloc(bytes + by), by, bytes);
}

PUBLIC void *calloc(size_t count, size_t each) {
  size_t bytes;
  if (__builtin_mul_overflow(count, each, &bytes) || !is_large(bytes))
    return __libc_calloc(count, each);
  size_t by = distance(16, bytes, __builtin_return_address(0));
  return give(__libc_calloc(1, bytes + by), by, bytes);
}

PUBLIC void free(void *given) {
  struct moved *moved = given == NULL ? NULL : find(given, true);
  if (moved == NULL) {
    __libc_free(given);
    return;
  }
  __libc_free(moved->base);
  __libc_free(moved);
}

PUBLIC void *realloc(void *given, size_t bytes) {
  struct moved *moved = given == NULL ? NULL : find(given, bytes != 0 && bytes < SIZE_MAX / 2);
  if (moved == NULL) {
    // A block that grows large stays where glibc puts it: to move its bytes once more would be dear.
    return given == NULL && is_large(bytes) ? malloc(bytes) : __libc_realloc(given, bytes);
  }
  if (bytes == 0) {
    free(given);
    return NULL;
  }
  if (bytes >= SIZE_MAX / 2) {
    errno = ENOMEM;
    return NULL;
  }
  size_t by = (size_t)(moved->given - moved->base);
  char *base = __libc_realloc(moved->base, bytes + by);
  if (base == NULL) {
    remember(moved);
    return NULL;
  }
  moved->given = base + by;
  moved->base = base;
  moved->bytes = bytes;
  remember(moved);
  return moved->given;
}

static void *aligned(size_t align, size_t bytes, void *caller) {
  if (!is_large(bytes) || align >= MEBIBYTE)
    return __libc_memalign(align, bytes);
  size_t by = distance(align < 16 ? 16 : align, bytes, caller);
  return give(__libc_memalign(align, bytes + by), by, bytes);
}

PUBLIC void *memalign(size_t align, size_t bytes) {
  return aligned(align, bytes, __builtin_return_address(0));
}

PUBLIC void *aligned_alloc(size_t align, size_t bytes) {
  return aligned(align, bytes, __builtin_return_address(0));
}

PUBLIC int posix_memalign(void **to, size_t align, size_t bytes) {
  if (align % sizeof(void *) != 0 || align == 0 || (align & (align - 1)) != 0)
    return EINVAL;
  int before = errno;
  void *given = aligned(align, bytes, __builtin_return_address(0));
  errno = before;
  if (given == NULL)
    return ENOMEM;
  *to = given;
  return 0;
}

PUBLIC void *valloc(size_t bytes) {
  return aligned((size_t)sysconf(_SC_PAGESIZE), bytes, __builtin_return_address(0));
}

PUBLIC void *pvalloc(size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return aligned(page, (bytes + page - 1) / page * page, __builtin_return_address(0));
}

PUBLIC size_t malloc_usable_size(void *given) {
  struct moved *moved = given == NULL ? NULL : find(given, false);
  if (moved != NULL)
    return moved->bytes;
  static size_t (*_Atomic real)(void *);
  size_t (*usable)(void *) = atomic_load(&real);
  if (usable == NULL) {
    *(void **)&usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    atomic_store(&real, usable);
  }
  return usable == NULL ? 0 : usable(given);
}
