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

extern char **environ __attribute__((weak));

/* Too large for the stack of a signal handler; used under the lock. */
static struct memlode_request hello;
static _Atomic uint32_t spare_canary;

MEMLODE_HIDDEN void memlode_block_signals(uint64_t *saved) {
  uint64_t all = ~(uint64_t)0;
  memlode_call(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, saved, sizeof all);
}

MEMLODE_HIDDEN void memlode_restore_signals(const uint64_t *saved) {
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

/* Finds the collector's address. False while there is no environment to look into. */
static bool read_environment(void) {
  static const char name[] = "MEMLODE_COLLECTOR=";
  if (memlode_process.socket_size)
    return true;
  if (!&environ || !environ)
    return false;
  uint32_t length = 0;
  for (char **variable = environ; *variable; variable++) {
    const char *text = *variable;
    size_t i = 0;
    while (i < sizeof name - 1 && text[i] == name[i])
      i++;
    if (i < sizeof name - 1)
      continue;
    text += i;
    while (text[length] && length < sizeof memlode_process.socket.path) {
      memlode_process.socket.path[length] = text[length];
      length++;
    }
    break;
  }
  /* A set-user-id program does not take orders from its environment. */
  bool privileged = memlode_call(SYS_getuid) != memlode_call(SYS_geteuid) ||
                    memlode_call(SYS_getgid) != memlode_call(SYS_getegid);
  if (!length || length == sizeof memlode_process.socket.path || privileged)
    length = 0;
  memlode_process.socket.path[length] = 0;
  memlode_process.socket.family = AF_UNIX;
  memlode_process.socket_size = (uint32_t)(sizeof memlode_process.socket.family + length + 1);
  return true;
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

/* Nobody is waited for longer than for room in a ring. */
static void limit_waits(long fd) {
  uint32_t connected = atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_CONNECTED;
  uint32_t patience_ms = connected ? memlode_process.shared->patience_ms : MEMLODE_RING_PATIENCE_MS;
  struct timeval patience = {.tv_sec = patience_ms / 1000, .tv_usec = patience_ms % 1000 * 1000};
  memlode_call(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  memlode_call(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

/* A connected socket or -errno. */
static long open_socket(int flags) {
  if (memlode_process.socket.path[0] == 0)
    return -ENOENT;
  long fd = memlode_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
  if (memlode_failed(fd))
    return fd;
  limit_waits(fd);
  long result;
  do
    result = memlode_call(SYS_connect, fd, &memlode_process.socket, memlode_process.socket_size);
  while (result == -EINTR);
  if (memlode_failed(result)) {
    memlode_call(SYS_close, fd);
    return result;
  }
  return fd;
}

/* Nobody will ever answer, as opposed to: not now, or not from here. */
static bool is_final(long error) { return error == -ENOENT || error == -ECONNREFUSED; }

/* One question, no wait: a collector that is stopped or busy still holds its socket. */
MEMLODE_HIDDEN bool memlode_collector_lives(void) {
  long fd = open_socket(SOCK_NONBLOCK);
  if (!memlode_failed(fd))
    memlode_call(SYS_close, fd);
  return !is_final(fd);
}

/* Sends a request and waits for its reply; `received_fd` becomes the descriptor that came along,
 * or -1. Zero or -errno. */
static long exchange(struct memlode_request *request, struct memlode_reply *reply, int *received_fd) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  reply->magic = 0;
  control.header.cmsg_level = 0; /* until the kernel fills it in */
  control.header.cmsg_type = 0;
  *received_fd = -1;
  long fd = open_socket(0);
  if (memlode_failed(fd))
    return fd;
  long result;
  do
    result = memlode_call(SYS_sendto, fd, request, sizeof *request, MSG_NOSIGNAL, 0, 0);
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
      *received_fd = *(int *)CMSG_DATA(&control.header);
    if (result != sizeof *reply || reply->magic != MEMLODE_MAGIC_MESSAGE)
      result = memlode_failed(result) ? result : -EPROTO;
    else
      result = 0;
  }
  memlode_call(SYS_close, fd);
  return result;
}

static void fill_in(struct memlode_request *request, uint16_t kind) {
  request->magic = MEMLODE_MAGIC_MESSAGE;
  request->version = MEMLODE_VERSION_RING;
  request->kind = kind;
  request->pid = memlode_process.pid;
  request->process = memlode_process.index;
}

/* The word that tells a forked child from its parent. */
static void make_canary(void) {
  if (memlode_process.canary)
    return;
  long page = memlode_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!memlode_failed(page) && memlode_call(SYS_madvise, page, 4096, MADV_WIPEONFORK) == 0)
    memlode_process.canary = (_Atomic uint32_t *)page;
  else
    memlode_process.canary = &spare_canary; /* an old kernel: fork handlers alone must do */
}

/* Maps the shared memory such that regions lie at multiples of MEMLODE_PAIR_BYTES. */
static bool map_shared(int fd) {
  /* A limit on address space may not leave room for all rings: then take fewer. */
  for (uint32_t rings = MEMLODE_RING_RINGS; rings >= 16; rings /= 2) {
    size_t bytes = MEMLODE_RING_FIRST_RING_OFFSET + (size_t)rings * MEMLODE_REGION_BYTES;
    long reserved = memlode_call(SYS_mmap, 0, bytes + MEMLODE_PAIR_BYTES, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memlode_failed(reserved))
      continue;
    uintptr_t first_ring = ((uintptr_t)reserved + MEMLODE_RING_FIRST_RING_OFFSET + MEMLODE_PAIR_BYTES - 1) &
                           ~(uintptr_t)(MEMLODE_PAIR_BYTES - 1);
    uintptr_t base = first_ring - MEMLODE_RING_FIRST_RING_OFFSET;
    if (memlode_failed(
            memlode_call(SYS_mmap, base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0))) {
      memlode_call(SYS_munmap, reserved, bytes + MEMLODE_PAIR_BYTES);
      continue;
    }
    if (base > (uintptr_t)reserved)
      memlode_call(SYS_munmap, reserved, base - (uintptr_t)reserved);
    uintptr_t end = (uintptr_t)reserved + bytes + MEMLODE_PAIR_BYTES;
    if (end > base + bytes)
      memlode_call(SYS_munmap, base + bytes, end - (base + bytes));
    memlode_call(SYS_madvise, base, bytes, MADV_DONTDUMP);
    struct memlode_process_header *shared = (struct memlode_process_header *)base;
    if (shared->magic != MEMLODE_MAGIC_RING || shared->version != MEMLODE_VERSION_RING ||
        shared->chunks != MEMLODE_RING_CHUNKS || shared->ring_count < rings) {
      memlode_call(SYS_munmap, base, bytes);
      return false;
    }
    if (memlode_failed(memlode_call(SYS_mmap, __memlode_control, MEMLODE_CONTROL_BYTES,
                                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0))) {
      memlode_call(SYS_munmap, base, bytes);
      return false;
    }
    memlode_process.shared = shared;
    memlode_process.first_ring = (char *)first_ring;
    memlode_process.rings = rings;
    return true;
  }
  return false;
}

static void set_mode(enum memlode_mode mode) {
  atomic_store_explicit(&memlode_process.mode, mode, memory_order_release);
}

MEMLODE_HIDDEN void memlode_discard(void) {
  set_mode(MEMLODE_DISCARDING);
  atomic_fetch_or_explicit(memlode_dormant(), MEMLODE_OFF_NOBODY, memory_order_relaxed);
}

MEMLODE_HIDDEN void memlode_give_up(void) {
  atomic_store_explicit((_Atomic uint32_t *)&memlode_process.shared->given_up, 1, memory_order_relaxed);
  memlode_discard();
}

MEMLODE_HIDDEN void memlode_forget_control(void) {
  memlode_call(SYS_mmap, __memlode_control, MEMLODE_CONTROL_BYTES, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Says hello if this process has not yet. Stays unconnected when trying again later may help. */
MEMLODE_HIDDEN enum memlode_mode memlode_connect_locked(void) {
  enum memlode_mode mode =
      (enum memlode_mode)atomic_load_explicit(&memlode_process.mode, memory_order_relaxed);
  if (mode != MEMLODE_UNCONNECTED || memlode_is_vfork_child() || !read_environment())
    return mode;
  if (asks_to_discard()) {
    set_mode(MEMLODE_DISCARDING);
    return MEMLODE_DISCARDING;
  }
  struct memlode_reply reply;
  int fd;
  fill_in(&hello, MEMLODE_MESSAGE_HELLO);
  hello.process = 0;
  long result = exchange(&hello, &reply, &fd);
  if (result != 0) {
    if (is_final(result) || result == -EAGAIN)
      memlode_discard();
  } else if (reply.status != MEMLODE_MESSAGE_STATUS_OK || fd < 0 || !map_shared(fd)) {
    memlode_discard();
  } else {
    make_canary();
    atomic_store_explicit(memlode_process.canary, 1, memory_order_relaxed);
    memlode_process.index = reply.process;
    if (atomic_load_explicit(&memlode_process.cancels, memory_order_relaxed))
      memlode_process.shared->cancels = 1;
    set_mode(MEMLODE_CONNECTED);
    memlode_switch_regions_locked(); /* a forked child is where its parent was */
    memlode_announce_modules_locked();
  }
  if (fd >= 0)
    memlode_call(SYS_close, fd);
  return (enum memlode_mode)atomic_load_explicit(&memlode_process.mode, memory_order_relaxed);
}

/* Sends a module message. What became of it is the collector's to report. */
MEMLODE_HIDDEN void memlode_send_locked(struct memlode_request *request) {
  struct memlode_reply reply;
  int fd;
  fill_in(request, request->kind);
  long result = exchange(request, &reply, &fd);
  if (is_final(result))
    memlode_discard();
  else if (result == -EAGAIN)
    memlode_give_up();
  if (fd >= 0)
    memlode_call(SYS_close, fd);
}

/* Wakes the collector if it sleeps. */
MEMLODE_HIDDEN void memlode_doorbell(bool even_if_awake) {
  struct memlode_process_header *shared = memlode_process.shared;
  /* Pairs with the collector's: it says that it sleeps, then looks at the rings once more. */
  atomic_thread_fence(memory_order_seq_cst);
  if (!even_if_awake &&
      !atomic_load_explicit((_Atomic uint32_t *)&shared->collector_asleep, memory_order_relaxed))
    return;
  _Atomic uint32_t *doorbell = (_Atomic uint32_t *)&shared->doorbell;
  atomic_fetch_add_explicit(doorbell, 1, memory_order_relaxed);
  memlode_call(SYS_futex, doorbell, FUTEX_WAKE, 0x7fffffff);
}
