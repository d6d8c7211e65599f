/* Numbers that C and assembly share. */
#ifndef MEMLODE_STUBS_H
#define MEMLODE_STUBS_H

#define MEMLODE_STUBS 256     /* handler functions that a program may have */
#define MEMLODE_STUB_BYTES 16 /* from one stub to the next */

#endif
