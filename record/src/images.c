/* The program's images, and what they define: as dl_iterate_phdr and dlsym tell it, but that a program may
 * have functions of these names itself, for which the loader would take them when we call.
 *
 * Not in the static library: a static program is one image, and has no second definition of anything. */
#include "runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

enum { IS_HIDDEN_VERSION = 0x8000 };

MEMLODE_HIDDEN bool memlode_find_image(uintptr_t address, struct memlode_image *image) {
  struct dl_find_object found;
  if (_dl_find_object((void *)address, &found) != 0)
    return false;
  const ElfW(Ehdr) *header = found.dlfo_map_start;
  *image = (struct memlode_image){
      .bias = found.dlfo_link_map->l_addr,
      .name = found.dlfo_link_map->l_name,
      .segments = (const ElfW(Phdr) *)((uintptr_t)header + header->e_phoff),
      .count = header->e_phnum,
  };
  return true;
}

/* The tables by which an image's symbols are found. */
struct tables {
  const ElfW(Sym) * symbols;
  const char *names;
  const uint32_t *hashes; /* DT_GNU_HASH */
  const uint16_t *versions;
};

static struct tables tables_of(const struct link_map *map) {
  struct tables tables = {0, 0, 0, 0};
  for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
    /* The loader has made addresses of most of them. */
    uintptr_t at = entry->d_un.d_ptr < map->l_addr ? entry->d_un.d_ptr + map->l_addr : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB)
      tables.symbols = (const ElfW(Sym) *)at;
    else if (entry->d_tag == DT_STRTAB)
      tables.names = (const char *)at;
    else if (entry->d_tag == DT_GNU_HASH)
      tables.hashes = (const uint32_t *)at;
    else if (entry->d_tag == DT_VERSYM)
      tables.versions = (const uint16_t *)at;
  }
  return tables;
}

static bool is_equal(const char *a, const char *b) {
  while (*a && *a == *b)
    a++, b++;
  return *a == *b;
}

/* Returns an image's definition of a symbol, NULL if it has none. */
static const ElfW(Sym) * find_symbol(const struct link_map *map, const char *name, uint32_t hash) {
  struct tables tables = tables_of(map);
  if (!tables.symbols || !tables.names || !tables.hashes || !tables.hashes[0])
    return NULL;
  const uint32_t bucket_count = tables.hashes[0], first = tables.hashes[1], filter_words = tables.hashes[2];
  const uint32_t *buckets = tables.hashes + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t *chains = buckets + bucket_count;
  for (uint32_t i = buckets[hash % bucket_count]; i >= first && i != 0; i++) {
    const ElfW(Sym) *symbol = &tables.symbols[i];
    uint32_t other = chains[i - first];
    if ((other | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
        !(tables.versions && tables.versions[i] & IS_HIDDEN_VERSION) &&
        is_equal(tables.names + symbol->st_name, name))
      return symbol;
    if (other & 1)
      break;
  }
  return NULL;
}

MEMLODE_HIDDEN void *memlode_next(const char *name) {
  struct dl_find_object own;
  if (_dl_find_object(&memlode_process, &own) != 0)
    return NULL;
  uint32_t hash = 5381;
  for (const char *at = name; *at; at++)
    hash = hash * 33 + (unsigned char)*at;
  for (const struct link_map *map = own.dlfo_link_map->l_next; map; map = map->l_next) {
    const ElfW(Sym) *symbol = find_symbol(map, name, hash);
    if (!symbol)
      continue;
    uintptr_t address = map->l_addr + symbol->st_value;
    if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
      address = ((uintptr_t (*)(void))address)();
    return (void *)address;
  }
  return NULL;
}

MEMLODE_HIDDEN memlode_plain_handler *memlode_libc_signal(int signal, memlode_plain_handler *handler) {
  typedef memlode_plain_handler *function(int, memlode_plain_handler *);
  return ((function *)(uintptr_t)memlode_next("ssignal"))(signal, handler);
}
