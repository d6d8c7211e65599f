/* Finding the collector.
 *
 * The environment has the path of its socket, whose name ends with the collector's process id:
 *
 *     MEMLODE_COLLECTOR=/run/user/1000/memlode-4711-0/collector-4711
 *
 * There is a second socket of that number, in the kernel's abstract name space. It is for those who do not
 * get at the path any more: in another root, as another user. And a program whose environment was emptied
 * looks for it by the numbers of its ancestors, one of which is the collector if the program is recorded at
 * all. The kernel tells whose socket it is, so that nobody else can take that place; and only root, or the
 * user that the program runs as, is told what it does. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

extern char **__environ __attribute__((weak));

/* Returns where the process's stack began: its argument count is there, and its environment behind the
 * arguments. Dynamic programs run code before libc knows its environment. */
extern void *__libc_stack_end __attribute__((weak));

enum { MOST_ANCESTORS = 64 };

static char **find_environment(void) {
  if (&__environ && __environ)
    return __environ;
  if (!&__libc_stack_end || !__libc_stack_end)
    return NULL;
  const long *stack = __libc_stack_end;
  return (char **)(uintptr_t)(stack + 1 + stack[0] + 1);
}

/* Returns what a string has behind a beginning; NULL if it does not begin so. */
static const char *behind(const char *text, const char *beginning) {
  while (*beginning && *text == *beginning) {
    text++;
    beginning++;
  }
  return *beginning ? NULL : text;
}

/* Returns the value of the variable of the environment that begins so, NULL if there is none. */
static const char *variable(const char *beginning) {
  char **environment = find_environment();
  const char *value = NULL;
  for (char **each = environment; each && *each && !value; each++)
    value = behind(*each, beginning);
  return value;
}

/* A set-user-id program does not take orders from its environment. */
static bool is_privileged(void) {
  return memlode_call(SYS_getuid) != memlode_call(SYS_geteuid) ||
         memlode_call(SYS_getgid) != memlode_call(SYS_getegid);
}

MEMLODE_HIDDEN const char *memlode_variable(const char *beginning) {
  return is_privileged() ? NULL : variable(beginning);
}

/* The number at the end of the collector's path. */
static uint32_t number_in(const char *path, uint32_t length) {
  uint32_t number = 0, unit = 1;
  while (length && path[length - 1] >= '0' && path[length - 1] <= '9' && unit <= 100000000) {
    number += unit * (uint32_t)(path[--length] - '0');
    unit *= 10;
  }
  return length && path[length - 1] == '-' ? number : 0;
}

static char *put_number(char *text, uint32_t number) {
  char digits[10];
  int count = 0;
  do
    digits[count++] = (char)('0' + number % 10);
  while (number /= 10);
  while (count)
    *text++ = digits[--count];
  return text;
}

static char *put(char *text, const char *what) {
  while (*what)
    *text++ = *what++;
  return text;
}

MEMLODE_HIDDEN bool memlode_may_trust(long fd, uint32_t number) {
  struct ucred owner = {0};
  socklen_t size = sizeof owner;
  long result = memlode_call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &owner, &size);
  return !memlode_failed(result) && (!number || (uint32_t)owner.pid == number) &&
         (owner.uid == 0 || owner.uid == (uint32_t)memlode_call(SYS_geteuid));
}

MEMLODE_HIDDEN long memlode_connect_to_number(long fd, uint32_t number) {
  struct {
    uint16_t family;
    char name[40];
  } address = {.family = AF_UNIX};
  char *end = put_number(put(address.name + 1, "memlode-collector-"), number);
  long result;
  do
    result = memlode_call(SYS_connect, fd, &address, end - (char *)&address);
  while (result == -EINTR);
  if (memlode_failed(result))
    return result;
  return memlode_may_trust(fd, number) ? 0 : -ECONNREFUSED;
}

/* The parent of a process, 0 if it cannot be told. */
static uint32_t parent_of(uint32_t process) {
  char path[32], text[512];
  char *end = put(put_number(put(path, "/proc/"), process), "/stat");
  *end = 0;
  long fd = memlode_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (memlode_failed(fd))
    return 0;
  long length = memlode_call(SYS_read, fd, text, sizeof text);
  memlode_call(SYS_close, fd);
  /* "pid (name) state parent ...", and the name may hold anything. */
  long at = memlode_failed(length) ? 0 : length;
  while (at > 0 && text[at - 1] != ')')
    at--;
  uint32_t parent = 0;
  for (at += 3; at > 3 && at < length && text[at] >= '0' && text[at] <= '9'; at++)
    parent = parent * 10 + (uint32_t)(text[at] - '0');
  return parent;
}

/* The number of the collector among the process's ancestors, 0 if there is none. */
static uint32_t find_ancestor(void) {
  long fd = memlode_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (memlode_failed(fd))
    return 0;
  uint32_t ancestor = (uint32_t)memlode_call(SYS_getppid), found = 0;
  for (int i = 0; ancestor && i < MOST_ANCESTORS; i++) {
    long result = memlode_connect_to_number(fd, ancestor);
    if (result == 0 || result == -EAGAIN) {
      found = ancestor;
      break;
    }
    ancestor = parent_of(ancestor);
  }
  memlode_call(SYS_close, fd);
  return found;
}

MEMLODE_HIDDEN bool memlode_read_environment(void) {
  if (memlode_process.socket_size)
    return true;
  if (!find_environment())
    return false;
  bool privileged = is_privileged();
  const char *path = variable("MEMLODE_COLLECTOR=");
  uint32_t length = 0;
  while (path && !privileged && path[length] && length < sizeof memlode_process.socket.path) {
    memlode_process.socket.path[length] = path[length];
    length++;
  }
  if (length == sizeof memlode_process.socket.path)
    length = 0;
  memlode_process.socket.path[length] = 0;
  memlode_process.socket.family = AF_UNIX;
  memlode_process.socket_size = (uint32_t)(sizeof memlode_process.socket.family + length + 1);
  memlode_process.collector = path ? number_in(memlode_process.socket.path, length) : 0;
  if (!path && !privileged)
    memlode_process.collector = find_ancestor();
  return true;
}
