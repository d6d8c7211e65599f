/* Loads and unloads shared libraries. Usage: host PLUGIN... Not instrumented itself if built with
 * -DPLAIN: then the runtime comes along with the first plug-in. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#ifndef PLAIN
#include "emit.h"
#endif

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    void *plugin = dlopen(argv[i], RTLD_NOW);
    if (!plugin) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    void (*work)(uint64_t, uint64_t) = (void (*)(uint64_t, uint64_t))dlsym(plugin, "work");
    work((uint64_t)i << 32, 100);
#ifndef PLAIN
    emit_loads((uint64_t)i << 40, 10);
#endif
    if (dlclose(plugin))
      return 1;
  }
  return 0;
}
