/* Ways to make a process another program. libc's own may call each other without calling what is defined
 * here, and a static program has no second definition to go on to: so all of them end in a system call. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* The shell that runs files which the kernel does not know (POSIX, execvp). */
#define SHELL "/bin/sh"
/* Directories of programs without PATH: what confstr(_CS_PATH) is in glibc. */
#define DIRECTORIES "/bin:/usr/bin"

/* Returns what a system call did that came back. */
static int failed(long error) {
  memlode_stay();
  errno = (int)-error;
  return -1;
}

MEMLODE_EXPORT int execve(const char *path, char *const arguments[], char *const environment[]) {
  memlode_leave();
  return failed(memlode_call(SYS_execve, path, arguments, environment));
}

MEMLODE_EXPORT int execv(const char *path, char *const arguments[]) {
  return execve(path, arguments, environ);
}

MEMLODE_EXPORT int execveat(int directory, const char *path, char *const arguments[],
                            char *const environment[], int flags) {
  memlode_leave();
  return failed(memlode_call(SYS_execveat, directory, path, arguments, environment, flags));
}

MEMLODE_EXPORT int fexecve(int descriptor, char *const arguments[], char *const environment[]) {
  return execveat(descriptor, "", arguments, environment, AT_EMPTY_PATH);
}

/* Executes a file; one that the kernel does not know is a script. */
static int execute(const char *path, char *const arguments[], char *const environment[]) {
  execve(path, arguments, environment);
  if (errno != ENOEXEC)
    return -1;
  size_t count = 0;
  while (arguments[count])
    count++;
  const char *words[count + 3];
  words[0] = SHELL;
  words[1] = path;
  words[2] = 0;
  for (size_t i = 1; i <= count; i++)
    words[i + 1] = arguments[i];
  return execve(SHELL, (char *const *)words, environment);
}

/* Returns whether another directory may still have the file. */
static bool may_be_elsewhere(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE || error == ENODEV ||
         error == ETIMEDOUT;
}

static const char *search_path(void) {
  for (char *const *variable = environ; variable && *variable; variable++)
    if (strncmp(*variable, "PATH=", 5) == 0)
      return *variable + 5;
  return DIRECTORIES;
}

MEMLODE_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[]) {
  const size_t length = strlen(file);
  if (strchr(file, '/'))
    return execute(file, arguments, environment);
  if (length == 0 || length > NAME_MAX) {
    errno = length == 0 ? ENOENT : ENAMETOOLONG;
    return -1;
  }
  bool is_forbidden = false;
  for (const char *directory = search_path();; directory++) {
    const size_t bytes = strcspn(directory, ":");
    char path[bytes + 1 + length + 1];
    memcpy(path, directory, bytes);
    path[bytes] = '/';
    /* An empty directory is the current one. */
    memcpy(path + bytes + (bytes > 0), file, length + 1);
    execute(path, arguments, environment);
    if (!may_be_elsewhere(errno))
      return -1;
    is_forbidden |= errno == EACCES;
    directory += bytes;
    if (*directory == 0)
      break;
  }
  if (is_forbidden)
    errno = EACCES;
  return -1;
}

MEMLODE_EXPORT int execvp(const char *file, char *const arguments[]) {
  return execvpe(file, arguments, environ);
}

typedef int become(const char *, char *const[], char *const[]);

/* Executes with the arguments of a list, which a null pointer ends and the environment may follow. */
static int become_listed(become *execute, const char *file, const char *first, va_list list,
                         bool has_environment) {
  va_list again;
  va_copy(again, list);
  size_t count = 0;
  for (const char *argument = first; argument; argument = va_arg(again, const char *))
    count++;
  va_end(again);
  char *arguments[count + 1];
  arguments[0] = (char *)(uintptr_t)first;
  for (size_t i = 1; i <= count; i++)
    arguments[i] = va_arg(list, char *);
  arguments[count] = 0; /* as it is; analysers do not see it */
  return execute(file, arguments, has_environment ? va_arg(list, char *const *) : environ);
}

MEMLODE_EXPORT int execl(const char *path, const char *first, ...) {
  va_list list;
  va_start(list, first);
  int result = become_listed(execve, path, first, list, false);
  va_end(list);
  return result;
}

MEMLODE_EXPORT int execlp(const char *file, const char *first, ...) {
  va_list list;
  va_start(list, first);
  int result = become_listed(execvpe, file, first, list, false);
  va_end(list);
  return result;
}

MEMLODE_EXPORT int execle(const char *path, const char *first, ...) {
  va_list list;
  va_start(list, first);
  int result = become_listed(execve, path, first, list, true);
  va_end(list);
  return result;
}
