/* Ways to make a process another program. libc's own may call each other without calling what is defined
 * here, and a static program has no second definition to go on to: so all of them end in a system call. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdarg.h>
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

MEMLODE_HIDDEN int memlode_execve(const char *path, char *const arguments[], char *const environment[]) {
  memlode_leave();
  return failed(memlode_call(SYS_execve, path, arguments, environment));
}
MEMLODE_INTERPOSE(execve);

MEMLODE_HIDDEN int memlode_execv(const char *path, char *const arguments[]) {
  return memlode_execve(path, arguments, __environ);
}
MEMLODE_INTERPOSE(execv);

MEMLODE_HIDDEN int memlode_execveat(int directory, const char *path, char *const arguments[],
                                    char *const environment[], int flags) {
  memlode_leave();
  return failed(memlode_call(SYS_execveat, directory, path, arguments, environment, flags));
}
MEMLODE_INTERPOSE(execveat);

MEMLODE_HIDDEN int memlode_fexecve(int descriptor, char *const arguments[], char *const environment[]) {
  return memlode_execveat(descriptor, "", arguments, environment, AT_EMPTY_PATH);
}
MEMLODE_INTERPOSE(fexecve);

/* Executes a file; one that the kernel does not know is a script. */
static int execute(const char *path, char *const arguments[], char *const environment[]) {
  memlode_execve(path, arguments, environment);
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
  return memlode_execve(SHELL, (char *const *)words, environment);
}

/* Returns whether another directory may still have the file. */
static bool may_be_elsewhere(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE || error == ENODEV ||
         error == ETIMEDOUT;
}

/* Returns what a string has behind a beginning; NULL if it does not begin so. */
static const char *behind(const char *text, const char *beginning) {
  while (*beginning && *text == *beginning)
    text++, beginning++;
  return *beginning ? NULL : text;
}

/* Bytes of a string before a character or its end. */
static size_t length_to(const char *text, char end) {
  size_t length = 0;
  while (text[length] && text[length] != end)
    length++;
  return length;
}

static const char *search_path(void) {
  for (char *const *variable = __environ; variable && *variable; variable++)
    if (behind(*variable, "PATH="))
      return behind(*variable, "PATH=");
  return DIRECTORIES;
}

MEMLODE_HIDDEN int memlode_execvpe(const char *file, char *const arguments[], char *const environment[]) {
  const size_t length = length_to(file, 0);
  if (file[length_to(file, '/')])
    return execute(file, arguments, environment);
  if (length == 0 || length > NAME_MAX) {
    errno = length == 0 ? ENOENT : ENAMETOOLONG;
    return -1;
  }
  bool is_forbidden = false;
  for (const char *directory = search_path();; directory++) {
    const size_t bytes = length_to(directory, ':');
    char path[bytes + 1 + length + 1];
    memlode_copy(path, directory, bytes);
    path[bytes] = '/';
    /* An empty directory is the current one. */
    memlode_copy(path + bytes + (bytes > 0), file, length + 1);
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
MEMLODE_INTERPOSE(execvpe);

MEMLODE_HIDDEN int memlode_execvp(const char *file, char *const arguments[]) {
  return memlode_execvpe(file, arguments, __environ);
}
MEMLODE_INTERPOSE(execvp);

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
  return execute(file, arguments, has_environment ? va_arg(list, char *const *) : __environ);
}

MEMLODE_HIDDEN int memlode_execl(const char *path, const char *first, ...) {
  va_list list;
  va_start(list, first);
  int result = become_listed(memlode_execve, path, first, list, false);
  va_end(list);
  return result;
}
MEMLODE_INTERPOSE(execl);

MEMLODE_HIDDEN int memlode_execlp(const char *file, const char *first, ...) {
  va_list list;
  va_start(list, first);
  int result = become_listed(memlode_execvpe, file, first, list, false);
  va_end(list);
  return result;
}
MEMLODE_INTERPOSE(execlp);

MEMLODE_HIDDEN int memlode_execle(const char *path, const char *first, ...) {
  va_list list;
  va_start(list, first);
  int result = become_listed(memlode_execve, path, first, list, true);
  va_end(list);
  return result;
}
MEMLODE_INTERPOSE(execle);
