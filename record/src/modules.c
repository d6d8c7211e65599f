/* Which instrumented images are loaded: found in the image's constructor,
 * remembered here so that a forked child can tell its own collector connection about them. */
#include "runtime.h"
#include "syscalls.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>

struct module {
  struct module *next;
  bool used;
  uintptr_t bias;
  struct memlode_request request;
};

/* Entries are reused, never unmapped; mapped one by one, for the heap is the program's. */
static struct module *modules;

static void read_notes(const char *notes, size_t size, struct memlode_request *request) {
  size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= size) {
    const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(notes + at);
    size_t name = at + sizeof *note;
    size_t description = name + (((size_t)note->n_namesz + 3) & ~(size_t)3);
    size_t next = description + (((size_t)note->n_descsz + 3) & ~(size_t)3);
    if (description > size || note->n_descsz > size - description)
      return;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && notes[name] == 'G' &&
        notes[name + 1] == 'N' && notes[name + 2] == 'U' && note->n_descsz <= sizeof request->build_id) {
      for (size_t i = 0; i < note->n_descsz; i++)
        request->build_id[i] = (uint8_t)notes[description + i];
      request->build_id_length = note->n_descsz;
      return;
    }
    at = next;
  }
}

/* The absolute path of an image. The main program has no name here: the collector finds it
 * through /proc. */
static void read_path(const char *name, struct memlode_request *request) {
  size_t length = 0;
  if (!name || !name[0])
    return;
  if (name[0] != '/') {
    long result = memlode_call(SYS_getcwd, request->path, sizeof request->path);
    if (!memlode_failed(result) && result > 1) {
      length = (size_t)result - 1;
      if (length < sizeof request->path)
        request->path[length++] = '/';
    }
  }
  for (size_t i = 0; name[i] && length < sizeof request->path; i++)
    request->path[length++] = (uint8_t)name[i];
  request->path_length = (uint32_t)length;
}

/* Describes the image that has an address. False if there is none. */
static bool describe(uintptr_t address, struct memlode_request *request) {
  struct memlode_image image;
  request->build_id_length = 0;
  request->path_length = 0;
  if (!memlode_find_image(address, &image))
    return false;
  request->load_bias = image.bias;
  read_path(image.name, request);
  const ElfW(Phdr) *segments = image.segments;
  for (int i = 0; i < image.count && !request->build_id_length; i++)
    if (segments[i].p_type == PT_NOTE)
      read_notes((const char *)(image.bias + segments[i].p_vaddr), segments[i].p_memsz, request);
  return true;
}

static struct module *fresh_entry(void) {
  for (struct module *module = modules; module; module = module->next)
    if (!module->used)
      return module;
  long page = memlode_call(SYS_mmap, 0, sizeof(struct module), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memlode_failed(page))
    return NULL;
  struct module *module = (struct module *)page;
  module->next = modules;
  return modules = module;
}

MEMLODE_EXPORT void __memlode_module_load(const void *handle) {
  if (atomic_load_explicit(&memlode_process.mode, memory_order_acquire) == MEMLODE_DISCARDING)
    return;
  uint64_t signals;
  memlode_lock(&signals);
  struct module *module = fresh_entry();
  memlode_unlock(&signals);
  if (!module)
    return;
  /* Not under our lock: it may take the loader's. Constructors run one at a time. */
  struct memlode_request *request = &module->request;
  if (!describe((uintptr_t)handle, request))
    return;
  memlode_lock(&signals);
  bool known = false;
  for (struct module *other = modules; other; other = other->next)
    known |= other->used && other->bias == request->load_bias && other != module;
  if (!known) {
    /* A hello announces what is in the list, so join it afterwards. */
    enum memlode_mode mode = memlode_connect_locked();
    module->bias = request->load_bias;
    module->used = true;
    request->kind = MEMLODE_MESSAGE_MODULE_LOAD;
    if (mode == MEMLODE_CONNECTED)
      memlode_send_locked(request);
  }
  memlode_unlock(&signals);
}

MEMLODE_EXPORT void __memlode_module_unload(const void *handle) {
  if (atomic_load_explicit(&memlode_process.mode, memory_order_acquire) == MEMLODE_DISCARDING)
    return;
  static struct memlode_request found; /* too large for a small stack; destructors run one at a time */
  if (!describe((uintptr_t)handle, &found))
    return;
  uint64_t signals;
  memlode_lock(&signals);
  for (struct module *module = modules; module; module = module->next) {
    if (!module->used || module->bias != found.load_bias)
      continue;
    module->used = false;
    module->request.kind = MEMLODE_MESSAGE_MODULE_UNLOAD;
    if (atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_CONNECTED &&
        !memlode_is_vfork_child())
      memlode_send_locked(&module->request);
  }
  memlode_unlock(&signals);
}

MEMLODE_HIDDEN void memlode_announce_modules_locked(void) {
  for (struct module *module = modules; module; module = module->next) {
    if (!module->used)
      continue;
    module->request.kind = MEMLODE_MESSAGE_MODULE_LOAD;
    memlode_send_locked(&module->request);
  }
}
