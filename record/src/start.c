/* Before the beginning of a static program.
 *
 * glibc has the resolvers of indirect functions called before it has made room for what is thread-local. They
 * may be instrumented code, or call some. So a static program begins here (start_*.S): it gets a preliminary
 * block of thread-local data, which libc replaces by its own. */
#include "runtime.h"
#include "syscalls.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

/* The program's file, where it is in memory. */
extern const ElfW(Ehdr) __ehdr_start MEMLODE_HIDDEN;

/* The data that libc keeps behind the thread pointer is more than it reads before it has its own. */
enum { ROOM = 4096 };

static uintptr_t round_up(uintptr_t what, uintptr_t unit) { return (what + unit - 1) / unit * unit; }

static void set_thread_pointer(uintptr_t pointer) {
#if defined(__x86_64__)
  ((uintptr_t *)pointer)[0] = ((uintptr_t *)pointer)[2] = pointer;
  memlode_call(SYS_arch_prctl, ARCH_SET_FS, pointer);
#elif defined(__aarch64__)
  __asm__ volatile("msr tpidr_el0, %0" : : "r"(pointer));
#endif
}

static const ElfW(Phdr) * first_segment(void) {
  return (const ElfW(Phdr) *)((uintptr_t)&__ehdr_start + __ehdr_start.e_phoff);
}

MEMLODE_HIDDEN bool memlode_find_image(uintptr_t address, struct memlode_image *image) {
  (void)address;
  *image = (struct memlode_image){.name = "", .segments = first_segment(), .count = __ehdr_start.e_phnum};
  for (int i = 0; i < image->count; i++)
    if (first_segment()[i].p_type == PT_LOAD && first_segment()[i].p_offset == 0)
      image->bias = (uintptr_t)&__ehdr_start - first_segment()[i].p_vaddr;
  return true;
}

MEMLODE_HIDDEN void memlode_prepare_thread(void) {
  const ElfW(Phdr) *segments = first_segment();
  const ElfW(Phdr) *data = NULL;
  uintptr_t bias = 0;
  for (int i = 0; i < __ehdr_start.e_phnum; i++) {
    if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
      bias = (uintptr_t)&__ehdr_start - segments[i].p_vaddr;
    if (segments[i].p_type == PT_TLS)
      data = &segments[i];
  }
  uintptr_t unit = data && data->p_align > 64 ? data->p_align : 64;
  uintptr_t size = data ? data->p_memsz : 0;
  size_t bytes = round_up(size, unit) + unit + 2 * ROOM;
  long room = memlode_call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memlode_failed(room))
    return;
#if defined(__x86_64__)
  uintptr_t pointer = round_up((uintptr_t)room + size, unit);
  char *block = (char *)(pointer - round_up(size, data && data->p_align ? data->p_align : 1));
#elif defined(__aarch64__)
  uintptr_t pointer = round_up((uintptr_t)room, unit);
  char *block = (char *)(pointer + round_up(16, data && data->p_align ? data->p_align : 1));
#endif
  const char *image = data ? (const char *)(bias + data->p_vaddr) : NULL;
  for (size_t i = 0; data && i < data->p_filesz; i++)
    block[i] = image[i];
  set_thread_pointer(pointer);
}

/* libc's own name for `signal`. */
extern memlode_plain_handler *__bsd_signal(int signal, memlode_plain_handler *handler);

MEMLODE_HIDDEN memlode_plain_handler *memlode_libc_signal(int signal, memlode_plain_handler *handler) {
  return __bsd_signal(signal, handler);
}

extern int pthread_setcanceltype(int, int *) __attribute__((weak));

/* A program that has that function of libc's may use it. */
MEMLODE_HIDDEN bool memlode_overlooks_cancelling(void) { return pthread_setcanceltype; }
