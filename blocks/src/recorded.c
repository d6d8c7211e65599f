// The other side of the library for programs that are recorded (`memlode record --library-blocks`):
// blocks that code of other compilers takes and gives back are said to the recorder. That is
// told.c, which memlode's pass has instrumented: its segments stand in the stream of the thread, in
// the middle of the program's own.
//
// A call of an allocator is the program's own, and recorded there, if the code that calls it was
// compiled with memlode: images have the places of such functions (`memlode_fun`, format/SPEC.md
// §2.8). Between the two there may be functions that the pass takes for allocators themselves, as
// libstdc++'s `operator new`: then their caller counts.
//
//   libfoo.so: foo_new ─► malloc                       said here
//   program:   main ─► malloc                          recorded in main
//   program:   main ─► operator new ─► malloc          recorded in main
//   libbar.so: bar_make ─► operator new ─► malloc      said here
//   libfoo.so: foo_make jumps to malloc                said here: `main` calls something else
#include "blocks.h"
#include "told.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

_Atomic size_t memlode_blocks_least;

// The recorder, if the program has it.
extern void __memlode_module_load(const void *handle) __attribute__((weak));
extern void __memlode_module_unload(const void *handle) __attribute__((weak));

static bool is_on;

bool memlode_blocks_are_noted(void) { return is_on; }

void *memlode_library_made(void *block, size_t bytes) {
  (void)bytes;
  return block;
}

void memlode_library_ended(void *block) { (void)block; }

// Takes what this library was preloaded by out of the environment, which the program and its
// children then have as they would have it without: `MEMLODE_BLOCKS` has what was to be preloaded
// otherwise.
static void leave_environment(void) {
  static char preload[] = "LD_PRELOAD=";
  char *others = NULL;
  for (char **from = environ, **to = environ; (*to = *from) != NULL; from++) {
    if (strncmp(*from, MEMLODE_BLOCKS_RECORD, strlen(MEMLODE_BLOCKS_RECORD)) == 0)
      others = *from + strlen(MEMLODE_BLOCKS_RECORD);
    else
      to++;
  }
  if (others == NULL)
    return;
  for (char **from = environ, **to = environ; (*to = *from) != NULL; from++) {
    if (strncmp(*from, preload, strlen(preload)) != 0)
      to++;
    else if (others[0] == ':') {
      // No longer than what stood there.
      memmove(*to + strlen(preload), others + 1, strlen(others));
      to++;
    }
  }
}

static bool is_asked_for(void) {
  for (char **at = environ; *at != NULL; at++)
    if (strncmp(*at, MEMLODE_BLOCKS_RECORD, strlen(MEMLODE_BLOCKS_RECORD)) == 0)
      return true;
  return false;
}

void memlode_blocks_begin(void) {
  if (environ == NULL)
    return;
  is_on = &__memlode_module_load != NULL && is_asked_for();
  if (is_on)
    leave_environment();
  memlode_blocks_least = is_on ? 1 : SIZE_MAX;
}

__attribute__((constructor)) static void announce(void) {
  // The first block of all, if there has been none: then all is found and decided.
  free(malloc(1));
  if (is_on)
    __memlode_module_load(memlode_library_table);
}

__attribute__((destructor)) static void leave(void) {
  if (is_on)
    __memlode_module_unload(memlode_library_table);
}

// ---- Whose code a place is ----

enum whose { OTHERS, OURS, PASSES_ON };

enum { MOST_IMAGES = 512, MOST_PASSING = 128 };

struct range {
  uintptr_t from, to;
};

// What an image says of its code. Entries are made once, and never change.
struct image {
  uintptr_t from, to;
  const char *functions;     // section `memlode_fun`: pairs of a distance and a length, of four bytes each
  const char *far_functions; // section `memlode_fun_far`: the distance has eight
  size_t functions_bytes, far_bytes;
  struct range passing[MOST_PASSING];
  unsigned passing_count;
};

static struct image *_Atomic images[MOST_IMAGES];

static bool begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }

// Returns whether the pass records what the function gives where it is called.
static bool is_allocator(const char *name) {
  return begins(name, "_Znw") || begins(name, "_Zna") || begins(name, "_Zdl") || begins(name, "_Zda") ||
         begins(name, "_FortranA") || strstr(name, "__rust_alloc") != NULL ||
         strstr(name, "__rust_realloc") != NULL || strstr(name, "__rust_dealloc") != NULL ||
         strstr(name, "__rdl_") != NULL || strstr(name, "__rg_") != NULL ||
         strstr(name, "GlobalAlloc") != NULL;
}

struct file {
  const char *bytes;
  size_t size;
};

static const void *part(const struct file *file, uint64_t at, uint64_t bytes) {
  return at <= file->size && bytes <= file->size - at ? file->bytes + at : NULL;
}

static void read_symbols(const struct file *file, const Elf64_Shdr *table, const Elf64_Shdr *names,
                         uintptr_t bias, struct image *image) {
  const Elf64_Sym *symbols = part(file, table->sh_offset, table->sh_size);
  const char *text = part(file, names->sh_offset, names->sh_size);
  if (symbols == NULL || text == NULL || names->sh_size == 0 || text[names->sh_size - 1] != 0)
    return;
  for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
    const Elf64_Sym *symbol = &symbols[i];
    if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_name >= names->sh_size || !is_allocator(text + symbol->st_name) ||
        image->passing_count == MOST_PASSING)
      continue;
    uintptr_t from = bias + symbol->st_value;
    image->passing[image->passing_count++] = (struct range){from, from + symbol->st_size};
  }
}

static void read_sections(const struct file *file, uintptr_t bias, struct image *image) {
  const Elf64_Ehdr *header = part(file, 0, sizeof *header);
  if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr))
    return;
  const Elf64_Shdr *sections = part(file, header->e_shoff, (uint64_t)header->e_shnum * sizeof *sections);
  if (sections == NULL || header->e_shstrndx >= header->e_shnum)
    return;
  const Elf64_Shdr *strings = &sections[header->e_shstrndx];
  const char *names = part(file, strings->sh_offset, strings->sh_size);
  if (names == NULL || strings->sh_size == 0 || names[strings->sh_size - 1] != 0)
    return;
  for (unsigned i = 0; i < header->e_shnum; i++) {
    const Elf64_Shdr *section = &sections[i];
    const char *name = section->sh_name < strings->sh_size ? names + section->sh_name : "";
    bool is_mapped =
        bias + section->sh_addr >= image->from && bias + section->sh_addr + section->sh_size <= image->to;
    if ((section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM) &&
        section->sh_link < header->e_shnum)
      read_symbols(file, section, &sections[section->sh_link], bias, image);
    if (strcmp(name, MEMLODE_SECTION_FUNCTIONS) == 0 && is_mapped) {
      image->functions = (const char *)(bias + section->sh_addr);
      image->functions_bytes = section->sh_size;
    }
    if (strcmp(name, MEMLODE_SECTION_FAR_FUNCTIONS) == 0 && is_mapped) {
      image->far_functions = (const char *)(bias + section->sh_addr);
      image->far_bytes = section->sh_size;
    }
  }
}

// The system's own calls: those of this library's names would be noted.
static void *pages(size_t bytes, int protection, int flags, int file) {
  void *memory = (void *)syscall(SYS_mmap, 0L, bytes, (long)protection, (long)flags, (long)file, 0L);
  return memory == MAP_FAILED ? NULL : memory;
}

static void read_file(const char *path, uintptr_t bias, struct image *image) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat stat;
  if (file < 0)
    return;
  if (fstat(file, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size > 0) {
    struct file all = {pages((size_t)stat.st_size, PROT_READ, MAP_PRIVATE, file), (size_t)stat.st_size};
    if (all.bytes != NULL) {
      read_sections(&all, bias, image);
      syscall(SYS_munmap, all.bytes, all.size);
    }
  }
  close(file);
}

static struct image *image_at(uintptr_t at) {
  unsigned i = 0;
  for (; i < MOST_IMAGES; i++) {
    struct image *known = atomic_load_explicit(&images[i], memory_order_acquire);
    if (known == NULL)
      break;
    if (at >= known->from && at < known->to)
      return known;
  }
  struct dl_find_object found;
  if (i == MOST_IMAGES || _dl_find_object((void *)at, &found) != 0)
    return NULL;
  struct image *made = pages(sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (made == NULL)
    return NULL;
  made->from = (uintptr_t)found.dlfo_map_start;
  made->to = (uintptr_t)found.dlfo_map_end;
  const char *name = found.dlfo_link_map->l_name;
  read_file(name != NULL && name[0] != 0 ? name : "/proc/self/exe", found.dlfo_link_map->l_addr, made);
  for (; i < MOST_IMAGES; i++) {
    struct image *expected = NULL;
    if (atomic_compare_exchange_strong(&images[i], &expected, made))
      break;
  }
  return made;
}

static bool is_in_functions(const struct image *image, uintptr_t at) {
  for (size_t i = 0; i + 8 <= image->functions_bytes; i += 8) {
    int32_t distance;
    uint32_t bytes;
    memcpy(&distance, image->functions + i, sizeof distance);
    memcpy(&bytes, image->functions + i + 4, sizeof bytes);
    uintptr_t from = (uintptr_t)(image->functions + i) + (uintptr_t)(intptr_t)distance;
    if (at > from && at <= from + bytes)
      return true;
  }
  for (size_t i = 0; i + 12 <= image->far_bytes; i += 12) {
    int64_t distance;
    uint32_t bytes;
    memcpy(&distance, image->far_functions + i, sizeof distance);
    memcpy(&bytes, image->far_functions + i + 8, sizeof bytes);
    uintptr_t from = (uintptr_t)(image->far_functions + i) + (uintptr_t)distance;
    if (at > from && at <= from + bytes)
      return true;
  }
  return false;
}

// Returns whether a place is in this library.
static bool is_own(uintptr_t at) {
  const struct image *own = image_at((uintptr_t)&is_on);
  return own != NULL && at >= own->from && at < own->to;
}

static enum whose whose_code(uintptr_t at) {
  const struct image *image = image_at(at);
  if (image == NULL)
    return OTHERS;
  if (is_own(at))
    return OURS;
  for (unsigned i = 0; i < image->passing_count; i++)
    if (at > image->passing[i].from && at <= image->passing[i].to)
      return PASSES_ON;
  return is_in_functions(image, at) ? OURS : OTHERS;
}

#if defined(__x86_64__)
// A distance of four bytes behind an instruction's operation code.
static uintptr_t leads_to(uintptr_t end) {
  int32_t distance;
  memcpy(&distance, (const void *)(end - sizeof distance), sizeof distance);
  return end + (uintptr_t)(intptr_t)distance;
}

static bool begins_with(uintptr_t at, const char *code, size_t bytes) {
  return memcmp((const void *)at, code, bytes) == 0;
}

// The function that the call in front of a return address enters, through the image's linkage
// table; 0 if a register says, 1 if memory does. The pass has made calls of allocators by their
// names of calls by pointers.
static uintptr_t called(uintptr_t back) {
  if (begins_with(back - 6, "\xff\x15", 2)) // call *slot(%rip)
    return *(const uintptr_t *)leads_to(back);
  if (begins_with(back - 5, "\xe8", 1)) {
    uintptr_t target = leads_to(back), at = target;
    if (image_at(target) == NULL)
      return 0;
    at += begins_with(at, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0; // endbr64
    at += begins_with(at, "\xf2", 1) ? 1 : 0;             // bnd
    return begins_with(at, "\xff\x25", 2) ? *(const uintptr_t *)leads_to(at + 6) : target;
  }
  return begins_with(back - 2, "\xff", 1) && (*(const uint8_t *)(back - 1) & 0xf8) == 0xd0 ? 0 : 1;
}
#else
// Here such a jump is taken for a call that the program makes.
static uintptr_t called(uintptr_t back) {
  (void)back;
  return 0;
}
#endif

// Whose call of an allocator it is that returns to a place. A function that ends in such a call may
// have jumped to it.
static enum whose find_whose(uintptr_t back) {
  enum whose whose = whose_code(back);
  uintptr_t target = whose == OURS ? called(back) : 0;
  if (target == 0)
    return whose;
  return is_own(target) || whose_code(target + 1) == PASSES_ON ? OURS : OTHERS;
}

// ---- What was found, by the return address ----

// One word each, so that threads need not take turns: the address, whose it is, and how many words
// further up the stack the function's own return address stands.
enum { REMEMBERED = 4096, WHOSE_BITS = 2, WORDS_BITS = 14, ADDRESS_BITS = 48 };
static _Atomic uint64_t remembered[REMEMBERED];

struct caller {
  void *const *slot;
  void *const *above;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
  struct caller *caller = argument;
  void *const *slot = (void *const *)_Unwind_GetCFA(context) - 1;
  if (slot <= caller->slot)
    return _URC_NO_REASON;
  if ((uintptr_t)*slot == _Unwind_GetIP(context))
    caller->above = slot;
  return _URC_END_OF_STACK;
}

static enum whose look(void *const *slot, size_t *words) {
  uint64_t at = (uintptr_t)*slot & ((UINT64_C(1) << ADDRESS_BITS) - 1);
  _Atomic uint64_t *place = &remembered[(at * 0x9E3779B97F4A7C15U) >> 52];
  uint64_t known = atomic_load_explicit(place, memory_order_relaxed);
  if (known != 0 && known >> (64 - ADDRESS_BITS) == at) {
    *words = known >> WHOSE_BITS & ((1 << WORDS_BITS) - 1);
    return (enum whose)(known & ((1 << WHOSE_BITS) - 1));
  }
  enum whose whose = find_whose((uintptr_t)*slot);
  *words = 0;
  if (whose == PASSES_ON) {
    struct caller caller = {slot, NULL};
    _Unwind_Backtrace(step, &caller);
    if (caller.above != NULL && caller.above - slot < 1 << WORDS_BITS)
      *words = (size_t)(caller.above - slot);
  }
  atomic_store_explicit(place, at << (64 - ADDRESS_BITS) | *words << WHOSE_BITS | whose,
                        memory_order_relaxed);
  return whose;
}

// Returns whether the call of an allocator that returns by `slot` is recorded where it is made.
static bool is_recorded(void *const *slot) {
  for (int depth = 0; depth < 8; depth++) {
    size_t words = 0;
    enum whose whose = look(slot, &words);
    if (whose != PASSES_ON)
      return whose == OURS;
    if (words == 0)
      return true;
    slot += words;
  }
  return true;
}

void memlode_blocks_note(uint16_t kind, const void *address, size_t bytes, void *const *slot) {
  if (!is_on)
    return;
  int before = errno;
  if (!is_recorded(slot)) {
    if (kind == MEMLODE_BLOCK_NOTE_TAKEN || kind == MEMLODE_BLOCK_NOTE_MAPPED)
      a_library((void *)address, bytes);
    else
      a_library_ends((void *)address);
  }
  errno = before;
}
