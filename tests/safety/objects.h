/* A program here tells on standard error where its global arrays are, so that every access that is
 * said to be of an array can be held against it. Standard output is what must not change. */
#ifndef OBJECTS_H
#define OBJECTS_H
#include <stdio.h>
#define OBJECT(array) OBJECT_NAMED(array) /* a name that is itself a macro */
#define OBJECT_NAMED(array)                                                                                  \
  fprintf(stderr, "object %s %p %p\n", #array, (void *)(array), (void *)((char *)(array) + sizeof(array)))
#endif
