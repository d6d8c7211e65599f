/* The collector's socket, spoken with bare system calls: a connection for each message, closed
 * before we return, so that the program never sees a descriptor of ours. The reply to hello brings
 * the shared memory along; it stays mapped for the life of the process. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Too large for the stack of a signal handler; used under the lock. */
static struct memlode_request hello;

MEMLODE_HIDDEN void memlode_block_signals(uint64_t *saved) {
  uint64_t all = ~(uint64_t)0;
  if (memlode_is_sealed())
    return;
  memlode_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, saved, sizeof all);
}

MEMLODE_HIDDEN void memlode_restore_signals(const uint64_t *saved) {
  if (memlode_is_sealed())
    return;
  memlode_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, saved, 0, sizeof *saved);
}

MEMLODE_HIDDEN void memlode_lock(uint64_t *saved_signals) {
  memlode_block_signals(saved_signals);
  _Atomic uint32_t *lock = &memlode_process.lock;
  uint32_t expected = 0;
  if (atomic_compare_exchange_strong_explicit(lock, &expected, 1, memory_order_acquire, memory_order_relaxed))
    return;
  while (atomic_exchange_explicit(lock, 2, memory_order_acquire))
    memlode_call(SYS_futex, lock, FUTEX_WAIT_PRIVATE, 2, 0);
}

MEMLODE_HIDDEN void memlode_unlock(const uint64_t *saved_signals) {
  _Atomic uint32_t *lock = &memlode_process.lock;
  if (atomic_exchange_explicit(lock, 0, memory_order_release) == 2)
    memlode_call(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1);
  memlode_restore_signals(saved_signals);
}

/* A child of vfork runs on its parent's memory. What it records goes into its parent's stream;
 * it must not claim or connect anything in its own name. */
MEMLODE_HIDDEN bool memlode_is_vfork_child(void) {
  uint32_t pid = (uint32_t)memlode_call(SYS_getpid);
  if (!memlode_process.pid)
    memlode_process.pid = pid; /* before the constructor */
  return memlode_process.pid != pid;
}

/* MEMLODE_COLLECTOR=discard: words are written as if somebody read them. What that costs is a figure of
 * its own. */
static bool asks_to_discard(void) {
  static const char word[] = "discard";
  size_t i = 0;
  while (i < sizeof word && memlode_process.socket.path[i] == word[i])
    i++;
  return i == sizeof word;
}

/* No wait is longer than that for room in a ring. */
static void limit_waits(long fd) {
  uint32_t connected = atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_CONNECTED;
  uint32_t patience_ms = connected ? memlode_process.shared->patience_ms : MEMLODE_RING_PATIENCE_MS;
  struct timeval patience = {.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
  memlode_call(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  memlode_call(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

/* A connected socket or -errno. Who does not get at the path finds the collector by its number. */
static long open_socket(int flags) {
  const char *path = memlode_process.socket.path;
  if (!path[0] && !memlode_process.collector)
    return -ENOENT;
  long fd = memlode_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  if (memlode_failed(fd))
    return fd;
  limit_waits(fd);
  long result = -ENOENT;
  if (path[0])
    do
      result = memlode_call(SYS_connect, fd, &memlode_process.socket, memlode_process.socket_size);
    while (result == -EINTR);
  if (path[0] && !memlode_failed(result) && !memlode_may_trust(fd, 0)) {
    memlode_call(SYS_close, fd);
    return -ECONNREFUSED;
  }
  if (memlode_failed(result) && result != -EAGAIN && memlode_process.collector)
    result = memlode_connect_to_number(fd, memlode_process.collector);
  if (memlode_failed(result)) {
    memlode_call(SYS_close, fd);
    return result;
  }
  return fd;
}

/* No collector will ever answer; the alternative is: not now, or not from here. */
static bool is_final(long error) { return error == -ENOENT || error == -ECONNREFUSED; }

/* One question, no wait: a collector that is stopped or busy still holds its socket. */
MEMLODE_HIDDEN bool memlode_collector_lives(void) {
  long fd = open_socket(SOCK_NONBLOCK);
  if (!memlode_failed(fd))
    memlode_call(SYS_close, fd);
  return !is_final(fd);
}

static void fill_in(struct memlode_request *request, uint16_t kind) {
  request->magic = MEMLODE_MAGIC_MESSAGE;
  request->version = MEMLODE_VERSION_RING;
  request->kind = kind;
  request->pid = memlode_process.pid;
  request->process = memlode_process.index;
}

/* Maps what follows the mapping of which this is the last page, at a multiple of MEMLODE_PAIR_BYTES. There is
 * no descriptor any more: a shared mapping's length is no limit to its copy (mremap(2), an old size of zero).
 */
static struct memlode_ring_header *map_behind(uintptr_t last_page, uint64_t slot) {
  const size_t page = MEMLODE_CONTROL_BYTES, bytes = MEMLODE_REGION_BYTES;
  const size_t room = page + bytes + MEMLODE_PAIR_BYTES;
  uintptr_t place = memlode_place_of(slot);
  long reserved = memlode_call(SYS_mmap, place ? place - page : 0, room, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memlode_failed(reserved))
    return NULL;
  uintptr_t low = (uintptr_t)reserved;
  uintptr_t start = (low + page + MEMLODE_PAIR_BYTES - 1) & ~(uintptr_t)(MEMLODE_PAIR_BYTES - 1);
  long result =
      memlode_call(SYS_mremap, last_page, 0, page + bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start - page);
  if (memlode_failed(result)) {
    memlode_call(SYS_munmap, low, room);
    return NULL;
  }
  memlode_call(SYS_munmap, low, start - low);
  if (low + room > start + bytes)
    memlode_call(SYS_munmap, start + bytes, low + room - (start + bytes));
  memlode_call(SYS_munlock, start, bytes);
  return (struct memlode_ring_header *)start;
}

/* Maps a few rings while there is a descriptor: not every kernel copies shared mappings, and Valgrind does
 * not. Returns how many. */
static uint32_t map_first(int fd) {
  enum { MOST = 256 };
  const size_t bytes = MEMLODE_REGION_BYTES, room = bytes + MEMLODE_PAIR_BYTES;
  uint32_t slot = 0;
  for (; slot < MOST && slot < memlode_process.rings; slot++) {
    long reserved =
        memlode_call(SYS_mmap, 0, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memlode_failed(reserved))
      break;
    uintptr_t start = ((uintptr_t)reserved + MEMLODE_PAIR_BYTES - 1) & ~(uintptr_t)(MEMLODE_PAIR_BYTES - 1);
    long offset = MEMLODE_RING_FIRST_RING_OFFSET + (long)slot * (long)bytes;
    if (memlode_failed(memlode_call(SYS_mmap, start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                    fd, offset))) {
      memlode_call(SYS_munmap, reserved, room);
      break;
    }
    if (start > (uintptr_t)reserved)
      memlode_call(SYS_munmap, reserved, start - (uintptr_t)reserved);
    memlode_call(SYS_munmap, start + bytes, (uintptr_t)reserved + room - (start + bytes));
    memlode_call(SYS_madvise, start, bytes, MADV_DONTDUMP);
    memlode_rings[slot] = (struct memlode_ring_header *)start;
  }
  return slot;
}

/* Maps the beginning of the shared memory. Rings follow as they are claimed: a program may have little
 * address space, or lock all that it has. */
static bool map_shared(int fd) {
  const size_t bytes = MEMLODE_RING_FIRST_RING_OFFSET;
  long base = memlode_call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memlode_failed(base))
    return false;
  memlode_call(SYS_madvise, base, bytes, MADV_DONTDUMP);
  struct memlode_process_header *shared = (struct memlode_process_header *)base;
  if (shared->magic != MEMLODE_MAGIC_RING || shared->version != MEMLODE_VERSION_RING ||
      shared->chunks != MEMLODE_RING_CHUNKS ||
      memlode_failed(memlode_call(SYS_mmap, __memlode_control, MEMLODE_CONTROL_BYTES, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, fd, 0))) {
    memlode_call(SYS_munmap, base, bytes);
    return false;
  }
  memlode_process.shared = shared;
  memlode_process.rings = shared->ring_count < MEMLODE_RING_RINGS ? shared->ring_count : MEMLODE_RING_RINGS;
  memlode_choose_area();
  memlode_rings[0] = map_behind(base + bytes - MEMLODE_CONTROL_BYTES, 0);
  if (!memlode_rings[0])
    memlode_process.rings = map_first(fd);
  return true;
}

MEMLODE_HIDDEN struct memlode_ring_header *memlode_map_ring_locked(uint64_t slot) {
  uint64_t next = slot;
  while (next > 0 && !memlode_rings[next] && !memlode_rings[next - 1])
    next--;
  for (; next <= slot; next++) {
    if (memlode_rings[next])
      continue;
    uintptr_t end = next ? (uintptr_t)memlode_rings[next - 1] + MEMLODE_REGION_BYTES
                         : (uintptr_t)memlode_process.shared + MEMLODE_RING_FIRST_RING_OFFSET;
    memlode_rings[next] = map_behind(end - MEMLODE_CONTROL_BYTES, next);
    if (!memlode_rings[next])
      return NULL;
  }
  return memlode_rings[slot];
}

/* A message to the collector, and what became of it. */
struct errand {
  struct memlode_request *request;
  struct memlode_reply reply;
  long result; /* 0 or -errno */
};

/* Sends a request, waits for its reply, and maps what comes along with it. */
static void exchange(void *argument) {
  struct errand *errand = argument;
  struct memlode_reply *reply = &errand->reply;
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  reply->magic = 0;
  control.header.cmsg_level = 0; /* until the kernel fills it in */
  control.header.cmsg_type = 0;
  int received_fd = -1;
  long fd = errand->result = open_socket(0);
  if (memlode_failed(fd))
    return;
  /* There must be room for the descriptor that comes along. */
  bool says_hello = errand->request->kind == MEMLODE_MESSAGE_HELLO;
  long result = says_hello ? memlode_call(SYS_dup, fd) : 0;
  if (says_hello && !memlode_failed(result))
    memlode_call(SYS_close, result);
  if (!memlode_failed(result))
    do
      result = memlode_call(SYS_sendto, fd, errand->request, sizeof *errand->request, MSG_NOSIGNAL, 0, 0);
    while (result == -EINTR);
  if (!memlode_failed(result)) {
    struct iovec part = {.iov_base = reply, .iov_len = sizeof *reply};
    struct msghdr message;
    message.msg_name = 0;
    message.msg_namelen = 0;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    message.msg_flags = 0;
    do
      result = memlode_call(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC);
    while (result == -EINTR);
    if (!memlode_failed(result) && message.msg_controllen >= sizeof control.header &&
        control.header.cmsg_level == SOL_SOCKET && control.header.cmsg_type == SCM_RIGHTS)
      received_fd = *(int *)CMSG_DATA(&control.header);
    if (result != sizeof *reply || reply->magic != MEMLODE_MAGIC_MESSAGE)
      result = memlode_failed(result) ? result : -EPROTO;
    else
      result = 0;
  }
  memlode_call(SYS_close, fd);
  if (says_hello && result == 0 &&
      (reply->status != MEMLODE_MESSAGE_STATUS_OK || received_fd < 0 || !map_shared(received_fd)))
    result = -ECONNREFUSED;
  if (received_fd >= 0)
    memlode_call(SYS_close, received_fd);
  errand->result = result;
}

/* The same, with a table of descriptors of its own, some of which it closes. */
static void exchange_with_room(void *argument) {
  enum { ROOM = 3, MOST = 4096 };
  for (int fd = 0, closed = 0; fd < MOST && closed < ROOM; fd++)
    closed += !memlode_failed(memlode_call(SYS_close, fd));
  exchange(argument);
}

/* The stack of what is run apart; used under the lock. */
static char apart[0x4000] __attribute__((aligned(16)));

/* A program that may open no more descriptors does not notice that we need some: another task shares its
 * memory, and not its descriptors. */
static void run(struct errand *errand) {
  exchange(errand);
  if (errand->result == -EMFILE || errand->result == -ENFILE)
    memlode_run_apart(exchange_with_room, errand, apart + sizeof apart);
}

static void set_mode(enum memlode_mode mode) {
  atomic_store_explicit(&memlode_process.mode, mode, memory_order_release);
}

MEMLODE_HIDDEN void memlode_discard(void) {
  set_mode(MEMLODE_DISCARDING);
  atomic_fetch_or_explicit(memlode_dormant(), MEMLODE_OFF_NOBODY, memory_order_relaxed);
}

MEMLODE_HIDDEN void memlode_discard_no_more(void) {
  atomic_fetch_and_explicit(memlode_dormant(), ~(uint64_t)MEMLODE_OFF_NOBODY, memory_order_relaxed);
  set_mode(MEMLODE_CONNECTED);
}

MEMLODE_HIDDEN void memlode_give_up(void) {
  atomic_store_explicit((_Atomic uint32_t *)&memlode_process.shared->given_up, 1, memory_order_relaxed);
  memlode_discard();
}

MEMLODE_HIDDEN void memlode_forget_control(void) {
  memlode_call(SYS_mmap, __memlode_control, MEMLODE_CONTROL_BYTES, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The page of the parent's memory that was kept to tell it what became of us. */
static void forget_parent_page(void) {
  if (memlode_process.parent)
    memlode_call(SYS_munmap, memlode_process.parent, MEMLODE_CONTROL_BYTES);
  memlode_process.parent = NULL;
}

MEMLODE_HIDDEN void memlode_tell_parent(void) {
  if (memlode_process.parent)
    atomic_fetch_add_explicit((_Atomic uint32_t *)&memlode_process.parent->lost_children, 1,
                              memory_order_relaxed);
}

MEMLODE_HIDDEN void memlode_tell_task(void) {
  if (atomic_load_explicit(&memlode_process.mode, memory_order_acquire) == MEMLODE_CONNECTED)
    atomic_fetch_add_explicit((_Atomic uint32_t *)&memlode_process.shared->foreign_tasks, 1,
                              memory_order_relaxed);
}

/* Registers if this process has not yet. Stays unconnected when trying again later may help. */
MEMLODE_HIDDEN enum memlode_mode memlode_connect_locked(void) {
  enum memlode_mode mode =
      (enum memlode_mode)atomic_load_explicit(&memlode_process.mode, memory_order_relaxed);
  if (mode != MEMLODE_UNCONNECTED || memlode_is_vfork_child() || !memlode_read_environment())
    return mode;
  if (asks_to_discard()) {
    set_mode(MEMLODE_DISCARDING);
    return MEMLODE_DISCARDING;
  }
  struct errand errand;
  errand.request = &hello;
  fill_in(&hello, MEMLODE_MESSAGE_HELLO);
  hello.process = 0;
  run(&errand);
  if (errand.result != 0) {
    if (is_final(errand.result) || errand.result == -EAGAIN || errand.result == -EACCES) {
      memlode_tell_parent();
      memlode_discard();
    }
  } else {
    forget_parent_page();
    memlode_make_canary();
    memlode_process.index = errand.reply.process;
    if (atomic_load_explicit(&memlode_process.cancels, memory_order_relaxed))
      memlode_process.shared->cancels = 1;
    set_mode(MEMLODE_CONNECTED);
    memlode_switch_regions_locked(); /* a forked child is where its parent was */
    memlode_announce_modules_locked();
  }
  return (enum memlode_mode)atomic_load_explicit(&memlode_process.mode, memory_order_relaxed);
}

/* Sends a module message. What became of it is the collector's to report. */
MEMLODE_HIDDEN void memlode_send_locked(struct memlode_request *request) {
  struct errand errand;
  errand.request = request;
  fill_in(request, request->kind);
  run(&errand);
  if (is_final(errand.result))
    memlode_discard();
  else if (errand.result == -EAGAIN)
    memlode_give_up();
}

/* Wakes the collector if it sleeps. */
MEMLODE_HIDDEN void memlode_doorbell(bool even_if_awake) {
  struct memlode_process_header *shared = memlode_process.shared;
  if (memlode_is_sealed())
    return;
  /* Pairs with the collector's: it says that it sleeps, then looks at the rings once more. */
  atomic_thread_fence(memory_order_seq_cst);
  if (!even_if_awake &&
      !atomic_load_explicit((_Atomic uint32_t *)&shared->collector_asleep, memory_order_relaxed))
    return;
  _Atomic uint32_t *doorbell = (_Atomic uint32_t *)&shared->doorbell;
  atomic_fetch_add_explicit(doorbell, 1, memory_order_relaxed);
  memlode_call(SYS_futex, doorbell, FUTEX_WAKE, 0x7fffffff);
}
