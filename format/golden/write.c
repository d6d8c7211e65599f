/* Writes the golden trace of the newest version of the format, byte by byte, from SPEC.md and the generated
 * header alone.
 *
 *   cc -std=c11 -Iformat/generated format/golden/write.c -o write && ./write DIRECTORY
 *
 * DIRECTORY/modules and DIRECTORY/threads must exist. README.md says what the trace holds and why.
 */
#include <memlode_format.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes ---- */

struct bytes {
  uint8_t data[4096];
  size_t length;
};

static void put(struct bytes *out, const void *data, size_t length) {
  if (length > sizeof out->data - out->length)
    abort();
  memcpy(out->data + out->length, data, length);
  out->length += length;
}

static void put_varint(struct bytes *out, uint64_t value) {
  do {
    uint8_t byte = value & 0x7f;
    value >>= 7;
    if (value != 0)
      byte |= 0x80;
    put(out, &byte, 1);
  } while (value != 0);
}

static void put_svarint(struct bytes *out, int64_t value) {
  put_varint(out, value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1);
}

static void put_varints(struct bytes *out, int count, ...) {
  va_list values;
  va_start(values, count);
  for (int i = 0; i < count; i++)
    put_varint(out, va_arg(values, unsigned));
  va_end(values);
}

static void put_blob(struct bytes *out, const void *data, size_t length) {
  put_varint(out, length);
  put(out, data, length);
}

static void put_text(struct bytes *out, const char *text) { put_blob(out, text, strlen(text)); }

/* Sections: one that nobody knows, which readers must skip, and those of `known`, which are encoded. */
static void put_sections(struct bytes *out, unsigned private, const struct bytes *known) {
  struct bytes all = {.length = 0};
  put_varint(&all, private + 1);
  put_text(&all, "whatever");
  put(&all, known->data, known->length);
  put_blob(out, all.data, all.length);
}

static uint32_t crc32(const void *data, size_t length) {
  uint32_t crc = ~0u;
  for (const uint8_t *byte = data, *end = byte + length; byte != end; byte++) {
    crc ^= *byte;
    for (int bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

static void write_file(const char *directory, const char *name, const struct bytes *contents) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(contents->data, 1, contents->length, file) != contents->length || fclose(file)) {
    perror(path);
    exit(1);
  }
}

/* ---- the image ----
 *
 *  long price(struct arc *a, int *w, long n) {       line 10
 *    long sum = a->cost + key_of(a->tail);           12, and 6 in key_of()
 *    memset(buffer, 0, n);                           13
 *    sum += gather(w), store_masked(w), total++;     14; total is atomic
 *    …                                               300: calloc, realloc, malloc, free, munmap
 */

enum { ANCHORS_AT = 0x2000, TABLES_AT = 0x3000 };
static const uint64_t load_bias = 0x555500000000;

enum string {
  S_DIRECTORY,
  S_FILE,
  S_PRICE,
  S_KEY_OF,
  S_ARC,
  S_COST,
  S_A,
  S_NODE,
  S_KEY,
  S_BUFFER,
  S_W,
  S_RULE,
  S_NAME,
  STRINGS
};
static const char *const strings[STRINGS] = {
    "/src",        "pricing.c", "price",  "key_of", "struct arc",       "cost",       "a",
    "struct node", "key",       "buffer", "w",      "rules:2: exclude", "pools: grab"};

enum site {
  SITE_COST,
  SITE_KEY,
  SITE_MEMSET,
  SITE_GATHER,
  SITE_MASKED,
  SITE_ATOMIC,
  SITE_ALLOC,
  SITE_FREE,
  SITES
};
enum segment { SEG_ENTER, SEG_BODY, SEG_VECTOR, SEG_HEAP, SEG_EXIT, SEG_RESUME, SEG_LOOP, SEGMENTS };

static void put_site(struct bytes *out, unsigned kind, unsigned evidence, unsigned flags, unsigned bytes,
                     unsigned location, unsigned variable, unsigned type, unsigned member) {
  const uint8_t first[2] = {(uint8_t)kind, (uint8_t)evidence};
  put(out, first, 2);
  put_varints(out, 6, flags, bytes, location, variable, type, member);
}

/* op code, then varints */
static void put_op(struct bytes *out, unsigned code, int count, ...) {
  const uint8_t byte = (uint8_t)code;
  put(out, &byte, 1);
  va_list values;
  va_start(values, count);
  for (int i = 0; i < count; i++)
    put_varint(out, va_arg(values, unsigned));
  va_end(values);
}

/* An optional reference is the index plus one. */
#define SOME(index) ((unsigned)(index) + 1u)

static void put_section(struct bytes *out, unsigned what, const struct bytes *contents) {
  put_varint(out, what);
  put_blob(out, contents->data, contents->length);
}

/* Form, name, bytes, flags; and then how many members there are. */
static void put_type(struct bytes *out, unsigned form, unsigned name, unsigned bytes, unsigned flags) {
  const uint8_t byte = (uint8_t)form;
  put(out, &byte, 1);
  put_varints(out, 3, name, bytes, flags);
}

static void put_member(struct bytes *out, unsigned kind, unsigned name, unsigned bit, unsigned bits,
                       unsigned type, unsigned flags) {
  const uint8_t byte = (uint8_t)kind;
  put(out, &byte, 1);
  put_varints(out, 5, name, bit, bits, type, flags);
}

/* The node has a key that is one of two variants, and the arc a base class, a bit-field and an array of
 * nodes. */
static void put_types(struct bytes *out) {
  enum { LONG, CHOICE, NODE, NODES, ARC, TYPES };
  struct bytes p = {.length = 0};
  put_varint(&p, TYPES);
  put_type(&p, MEMLODE_TYPE_FORM_SCALAR, SOME(S_W), 8, 0);
  put_type(&p, MEMLODE_TYPE_FORM_VARIANTS, 0, 16, 0);
  put_varint(&p, 3);
  put_member(&p, MEMLODE_MEMBER_KIND_DISCRIMINANT, 0, 0, 64, SOME(LONG), 0);
  put_member(&p, MEMLODE_MEMBER_KIND_VARIANT, SOME(S_KEY), 64, 64, SOME(LONG), 0);
  put_varints(&p, 2, 1u, 7u); /* if the discriminant is 7 */
  put_member(&p, MEMLODE_MEMBER_KIND_VARIANT, SOME(S_COST), 64, 64, SOME(LONG), 0);
  put_varint(&p, 0); /* otherwise */
  put_type(&p, MEMLODE_TYPE_FORM_STRUCTURE, SOME(S_NODE), 16, MEMLODE_TYPE_FLAG_WATCHED);
  put_varint(&p, 1);
  put_member(&p, MEMLODE_MEMBER_KIND_VARIANTS, 0, 0, 128, SOME(CHOICE), MEMLODE_MEMBER_FLAG_ESCAPES);
  put_type(&p, MEMLODE_TYPE_FORM_ARRAY, 0, 32, 0);
  put_varints(&p, 3, SOME(NODE), 1u, 2u); /* one dimension, of two */
  put_type(&p, MEMLODE_TYPE_FORM_CLASS, SOME(S_ARC), 64, MEMLODE_TYPE_FLAG_WATCHED | MEMLODE_TYPE_FLAG_CAST);
  put_varint(&p, 3);
  put_member(&p, MEMLODE_MEMBER_KIND_BASE, SOME(S_NODE), 0, 128, SOME(NODE), 0);
  put_member(&p, MEMLODE_MEMBER_KIND_FIELD, SOME(S_COST), 131, 5, SOME(LONG), MEMLODE_MEMBER_FLAG_BIT_FIELD);
  put_member(&p, MEMLODE_MEMBER_KIND_FIELD, SOME(S_A), 256, 256, SOME(NODES), 0);
  put_varints(&p, 3, 2u, SOME(ARC), 0u);             /* of the table's two types, the first */
  put_varints(&p, 3, 1u, S_BUFFER, (unsigned)NODES); /* variables: the buffer is an array */
  put_section(out, MEMLODE_TABLE_SECTION_TYPES, &p);
}

/* Lists by segment: one entry for each op, and one behind the last. */
static void put_instructions(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varint(&p, SEGMENTS);
  put_varints(&p, 2, 0u, 3u);                             /* enter */
  put_varints(&p, 4, 4u, 2u, 300u, 1u);                   /* body */
  put_varints(&p, 9, 5u, 0u, 6u, 7u, 0u, 0u, 0u, 8u, 2u); /* vector */
  put_varints(&p, 6, 0u, 0u, 0u, 0u, 0u, 0u);             /* heap */
  put_varints(&p, 4, 0u, 1u, 0u, 0u);                     /* exit, resume */
  put_varints(&p, 4, 0u, 3u, 2u, 1u);                     /* loop */
  put_section(out, MEMLODE_TABLE_SECTION_INSTRUCTIONS, &p);
}

/* The key's address is made of the cost, here or in the vector's segment; the masked store stores lanes. */
static void put_feeds(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varint(&p, 2);
  put_varints(&p, 4, (unsigned)SEG_BODY, 1u, 1u, 2u);
  put_svarint(&p, 0);
  put_varint(&p, 0);
  put_svarint(&p, SEG_BODY - SEG_VECTOR);
  put_varints(&p, 2, 3u, 0u); /* its update; no data */
  put_varints(&p, 5, (unsigned)SEG_VECTOR, 2u, 0u, 1u, 1u);
  put_svarint(&p, 0);
  put_varint(&p, 0);
  put_section(out, MEMLODE_TABLE_SECTION_FEEDS, &p);
}

/* Reasons and how often they stand in the code; the last is one that nobody knows. */
static void put_left_out(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varints(&p, 7, 3u, (unsigned)MEMLODE_LEFT_OUT_ASSEMBLY, 2u, (unsigned)MEMLODE_LEFT_OUT_FILTER, 200u,
              100u, 7u);
  put_section(out, MEMLODE_TABLE_SECTION_LEFT_OUT, &p);
}

/* Rules and names, and whether the unit has something for them. */
static void put_asked(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varints(&p, 5, 2u, (unsigned)S_RULE, 1u, (unsigned)S_NAME, 0u);
  put_section(out, MEMLODE_TABLE_SECTION_ASKED, &p);
}

/* The branches behind the key depend on the cost; those of the gather are not known. */
static void put_branches(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varint(&p, 2);
  put_varints(&p, 4, (unsigned)SEG_BODY, 1u, 1u, 1u);
  put_svarint(&p, 0);
  put_varint(&p, 0);
  put_varints(&p, 3, (unsigned)SEG_VECTOR, 0u, 0u);
  put_section(out, MEMLODE_TABLE_SECTION_BRANCHES, &p);
}

/* The cost that the key's address is made of is that of the iteration before. */
static void put_earlier(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varints(&p, 5, 1u, (unsigned)SEG_BODY, 1u, 1u, 0u);
  put_section(out, MEMLODE_TABLE_SECTION_EARLIER, &p);
}

/* Beside the body a call of a function that no table knows, and one of key_of, which this one has; an
 * assembly without a line; and a reason that nobody knows. The unit has a function that records nothing. */
static void put_unrecorded(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varints(&p, 3, 1u, (unsigned)SEG_BODY, 4u);
  put_varints(&p, 3, (unsigned)MEMLODE_LEFT_OUT_CALL, SOME(2), SOME(S_BUFFER));
  put_varints(&p, 3, (unsigned)MEMLODE_LEFT_OUT_CALL, SOME(3), SOME(S_W));
  put_varints(&p, 3, (unsigned)MEMLODE_LEFT_OUT_ASSEMBLY, 0u, 0u);
  put_varints(&p, 3, 100u, SOME(1), 0u);
  put_varints(&p, 2, 1u, (unsigned)S_W);
  put_section(out, MEMLODE_TABLE_SECTION_UNRECORDED, &p);
}

static void put_table(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varint(&p, STRINGS);
  for (int i = 0; i < STRINGS; i++)
    put_text(&p, strings[i]);
  put_varints(&p, 3, 1u, S_DIRECTORY, S_FILE); /* files */
  put_varints(&p, 1, 2u);                      /* functions */
  put_varints(&p, 4, S_PRICE, S_PRICE, SOME(0), 10u);
  put_varints(&p, 4, S_KEY_OF, S_KEY_OF, SOME(0), 5u);
  put_varints(&p, 1, 5u); /* locations */
  put_varints(&p, 4, 0u, 12u, 17u, 0u);
  put_varints(&p, 4, 1u, 6u, 13u, SOME(0)); /* key_of, inlined at 12 */
  put_varints(&p, 4, 0u, 13u, 3u, 0u);
  put_varints(&p, 4, 0u, 14u, 10u, 0u);
  put_varints(&p, 4, 0u, 300u, 5u, 0u);             /* a line of two LEB128 bytes */
  put_varints(&p, 5, 2u, S_ARC, 64u, S_NODE, 200u); /* types */
  put_varint(&p, SITES);
  put_site(&p, MEMLODE_KIND_LOAD, MEMLODE_EVIDENCE_SOURCE, 0, 8, SOME(0), SOME(S_A), SOME(0), SOME(S_COST));
  put_site(&p, MEMLODE_KIND_LOAD, MEMLODE_EVIDENCE_DEBUG, 0, 8, SOME(1), 0, SOME(1), SOME(S_KEY));
  put_site(&p, MEMLODE_KIND_STORE, MEMLODE_EVIDENCE_PARTIAL, MEMLODE_FLAG_GLOBAL, 0, SOME(2), SOME(S_BUFFER),
           0, 0);
  put_site(&p, MEMLODE_KIND_LOAD, MEMLODE_EVIDENCE_TBAA, MEMLODE_FLAG_VECTOR | MEMLODE_FLAG_FLOAT, 4, SOME(3),
           SOME(S_W), 0, 0);
  put_site(&p, MEMLODE_KIND_STORE, MEMLODE_EVIDENCE_NONE, MEMLODE_FLAG_VECTOR, 4, SOME(3), SOME(S_W), 0, 0);
  put_site(&p, MEMLODE_KIND_UPDATE, MEMLODE_EVIDENCE_SOURCE, MEMLODE_FLAG_ATOMIC | MEMLODE_FLAG_APPROXIMATE,
           4, SOME(3), 0, 0, 0);
  put_site(&p, MEMLODE_KIND_ALLOC, MEMLODE_EVIDENCE_NONE, 0, 0, SOME(4), 0, SOME(0), 0);
  put_site(&p, MEMLODE_KIND_FREE, MEMLODE_EVIDENCE_NONE, 0, 0, 0, 0, 0, 0);
  put_varint(&p, SEGMENTS);
  put_varints(&p, 2, 0u, 1u);
  put_op(&p, MEMLODE_OP_ENTER, 0);
  put_varints(&p, 2, 0u, 3u); /* cost, key 24 bytes below it, the buffer */
  put_op(&p, MEMLODE_OP_ACCESS, 2, SITE_COST, 0u);
  put_op(&p, MEMLODE_OP_ACCESS, 3, SITE_KEY, 1u, 47u); /* svarint 47 is -24 */
  put_op(&p, MEMLODE_OP_RANGE, 3, SITE_MEMSET, 0u, 0u);
  put_varints(&p, 2, 0u, 8u);
  put_op(&p, MEMLODE_OP_GATHER, 2, SITE_GATHER, 4u);
  put_op(&p, MEMLODE_OP_VALUE, 0);
  put_op(&p, MEMLODE_OP_MASKED, 3, SITE_MASKED, 8u, 0u);
  put_op(&p, MEMLODE_OP_ACCESS, 3, SITE_ATOMIC, 1u, 8u);
  put_op(&p, MEMLODE_OP_VALUE, 0);
  put_op(&p, MEMLODE_OP_STAMP, 0);
  put_op(&p, MEMLODE_OP_SYNC, 3, MEMLODE_SYNC_ACQUIRE, 3u, 0u); /* of the atomic operation */
  put_op(&p, MEMLODE_OP_DERIVED, 4, SITE_KEY, 1u, 0u, 32u); /* 16 bytes above the last body's first word */
  put_varints(&p, 2, 0u, 5u);
  put_op(&p, MEMLODE_OP_ALLOC_ARRAY, 1, SITE_ALLOC);
  put_op(&p, MEMLODE_OP_REALLOC, 1, SITE_ALLOC);
  put_op(&p, MEMLODE_OP_ALLOC, 1, SITE_ALLOC);
  put_op(&p, MEMLODE_OP_FREE, 1, SITE_FREE);
  put_op(&p, MEMLODE_OP_UNMAP, 1, SITE_FREE);
  put_varints(&p, 2, 0u, 1u);
  put_op(&p, MEMLODE_OP_EXIT, 0);
  put_varints(&p, 2, 0u, 1u);
  put_op(&p, MEMLODE_OP_RESUME, 0);
  put_varints(&p, 2, 0u, 3u); /* cost and key of one arc after the other */
  put_op(&p, MEMLODE_OP_REPEAT, 0);
  put_op(&p, MEMLODE_OP_STRIDE, 3, SITE_COST, 0u, 128u); /* svarint 128 is 64 */
  put_op(&p, MEMLODE_OP_STRIDE, 4, SITE_KEY, 1u, 47u, 128u);
  struct bytes known = {.length = 0};
  put_types(&known);
  put_instructions(&known);
  put_feeds(&known);
  put_left_out(&known);
  put_asked(&known);
  put_branches(&known);
  put_earlier(&known);
  put_unrecorded(&known);
  put_sections(&p, MEMLODE_TABLE_SECTION_PRIVATE, &known);

  const struct memlode_table_header header = {.magic = MEMLODE_MAGIC_TABLE,
                                              .version = MEMLODE_VERSION_TABLE,
                                              .payload_bytes = (uint32_t)p.length,
                                              .crc32 = crc32(p.data, p.length)};
  put(out, &header, sizeof header);
  put(out, p.data, p.length);
}

/* Functions of another compiler in a program that is linked statically; of one a flag that nobody knows. */
static void put_foreign(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_varints(&p, 3, (unsigned)MEMLODE_FOREIGN_FLAG_LIBRARIES, 2u, 64u);
  put_text(&p, "grind");
  put_varints(&p, 2, 300u, (unsigned)MEMLODE_FOREIGN_FLAG_LOCAL);
  put_text(&p, "w");
  put_varint(&p, 40);
  put_section(out, MEMLODE_MODULE_SECTION_FOREIGN, &p);
}

static void put_module(struct bytes *out) {
  struct bytes p = {.length = 0};
  put_text(&p, "/usr/bin/pricing");
  put_blob(&p, "\xde\xad\xbe\xef", 4);
  struct memlode_anchor anchors[SEGMENTS + 1];
  for (uint32_t i = 0; i < SEGMENTS; i++)
    anchors[i] =
        (struct memlode_anchor){.table_rel = TABLES_AT - (ANCHORS_AT + 8 * (int32_t)i), .segment = i};
  anchors[SEGMENTS] = (struct memlode_anchor){0, 0}; /* a hole */
  put_varint(&p, ANCHORS_AT);
  put_blob(&p, anchors, sizeof anchors);
  struct bytes table = {.length = 0};
  put_table(&table);
  put_varint(&p, TABLES_AT);
  put_blob(&p, table.data, table.length);
  put_varint(&p, 2); /* globals */
  put_text(&p, "buffer");
  put_svarint(&p, 0x5000);
  put_varint(&p, 4096);
  put_text(&p, "total");
  put_svarint(&p, -0x1000);
  put_varint(&p, 4);
  struct bytes known = {.length = 0};
  put_foreign(&known);
  put_sections(&p, MEMLODE_MODULE_SECTION_PRIVATE, &known);

  struct memlode_module_header header = {.magic = MEMLODE_MAGIC_MODULE,
                                         .version = MEMLODE_VERSION_TRACE,
                                         .codec = MEMLODE_CODEC_STORED,
                                         .payload_bytes = p.length,
                                         .unpacked_bytes = p.length,
                                         .payload_crc32 = crc32(p.data, p.length)};
  header.header_crc32 = crc32(&header, sizeof header);
  put(out, &header, sizeof header);
  put(out, p.data, p.length);
}

/* ---- the stream ---- */

static void put_chunk(struct bytes *out, struct memlode_chunk_header header, const struct bytes *payload) {
  header.magic = MEMLODE_MAGIC_CHUNK;
  header.version = MEMLODE_VERSION_TRACE;
  header.codec = MEMLODE_CODEC_STORED;
  header.payload_bytes = header.unpacked_bytes = (uint32_t)payload->length;
  header.payload_crc32 = crc32(payload->data, payload->length);
  header.header_crc32 = crc32(&header, sizeof header);
  put(out, &header, sizeof header);
  put(out, payload->data, payload->length);
}

static const int64_t frame = 0x7ffc00001000, arc = 0x555600000000, buffer = 0x555500005000,
                     words = 0x7ffc00000000;

/* The words of a chunk: heads and tails. */
struct words {
  struct bytes heads, tails;
};

static void put_word(struct words *out, int64_t word) {
  uint64_t value = word < 0 ? ~((uint64_t)word << 1) : (uint64_t)word << 1;
  unsigned tail = 0; /* bytes */
  while (tail < 8 && value >> (7 + 7 * tail) != 0)
    tail++;
  uint8_t head = tail == 8 ? 0xff : (uint8_t)(value << (tail + 1) | ((1u << tail) - 1));
  put(&out->heads, &head, 1);
  for (value >>= tail == 8 ? 0 : 7 - tail; tail > 0; tail--, value >>= 8) {
    uint8_t byte = (uint8_t)value;
    put(&out->tails, &byte, 1);
  }
}

static void put_words(struct bytes *out, const struct words *words) {
  put(out, words->heads.data, words->heads.length);
  put(out, words->tails.data, words->tails.length);
}

/* A segment in the dictionary, alone or with its words before the chunk. */
#define ENTRY(segment) ((unsigned)(segment) << 1)
#define INHERITED(segment) (ENTRY(segment) | 1u)

/* enter, body, body, body: the third body is the usual successor of the second. */
static void put_first_chunk(struct bytes *out) {
  struct bytes p = {.length = 0}, control = {.length = 0};
  struct words w = {{.length = 0}, {.length = 0}};
  put_varint(&p, 0);                                                 /* no sections */
  put_varints(&p, 5, 2u, 0u, ENTRY(SEG_ENTER), 0u, ENTRY(SEG_BODY)); /* dictionary: module 0, anchor */
  put_varint(&p, 0);                                                 /* empty stack */
  put_varints(&control, 6, 0u, 0u, 1u, 0u, 1u, 1u); /* enter; body; body again, and once as usual */
  put_blob(&p, control.data, control.length);
  put_word(&w, frame);
  put_word(&w, arc);
  put_word(&w, buffer);
  put_word(&w, 4096);
  for (int again = 0; again < 2; again++) {
    put_word(&w, 64); /* the next arc */
    put_word(&w, 0);
    put_word(&w, again == 0 ? -4096 : 0x180000000); /* a range of no bytes, one of 6 GiB */
  }
  put_words(&p, &w);
  put_chunk(out,
            (struct memlode_chunk_header){
                .raw_words = 14, .segments = 4, .accesses = 9, .first_stamp = 100, .last_stamp = 200},
            &p);
}

/* vector, heap, loop, resume, exit: starts inside price(). */
static void put_second_chunk(struct bytes *out) {
  struct bytes p = {.length = 0}, control = {.length = 0};
  struct words w = {{.length = 0}, {.length = 0}};
  put_sections(&p, MEMLODE_CHUNK_SECTION_PRIVATE, &(struct bytes){.length = 0});
  put_varints(&p, 11, 7u, 0u, ENTRY(SEG_ENTER), 0u, ENTRY(SEG_VECTOR), 0u, ENTRY(SEG_HEAP), 0u,
              ENTRY(SEG_RESUME), 0u, ENTRY(SEG_EXIT));
  put_varints(&p, 2, 0u, INHERITED(SEG_BODY));
  put_svarint(&p, arc + 128);
  put_svarint(&p, buffer - (arc + 128));
  put_svarint(&p, 0x180000000 - buffer);
  put_varints(&p, 2, 0u, ENTRY(SEG_LOOP));
  put_varints(&p, 2, 1u, 0u); /* stack: one frame, entered by entry 0 */
  put_svarint(&p, frame);
  put_varints(&control, 10, 1u, 0u, 2u, 0u, 6u, 0u, 3u, 0u, 4u, 0u);
  put_blob(&p, control.data, control.length);
  for (int lane = 0; lane < 4; lane++)
    put_word(&w, words + 64 * lane);
  put_word(&w, 0x5);                /* lanes 0 and 2 */
  put_word(&w, 0x3f800000);         /* lane 0: 1.0, lane 1: 0.0 */
  put_word(&w, 0x40200000bf000000); /* lane 2: -0.5, lane 3: 2.5 */
  put_word(&w, words + 0x800);
  put_word(&w, 0xc1); /* lanes 0, 6 and 7 */
  put_word(&w, 9);    /* total before, and after */
  put_word(&w, 10);
  put_word(&w, 250);
  put_word(&w, 260); /* acquired */
  const int64_t heap[] = {arc + 0x1000, 4,     16,  arc + 0x2000, 128, arc + 0x1000, 0, 1 << 20,
                          arc + 0x2000, words, 4096};
  for (size_t i = 0; i < sizeof heap / sizeof *heap; i++)
    put_word(&w, heap[i]);
  put_word(&w, 3); /* iterations */
  put_word(&w, arc);
  put_word(&w, frame);
  put_words(&p, &w);
  put_chunk(out,
            (struct memlode_chunk_header){.sequence = 1,
                                          .raw_words = 32,
                                          .segments = 5,
                                          .accesses = 10,
                                          .first_stamp = 200,
                                          .last_stamp = 300},
            &p);
}

/* heap, while recording was off. */
static void put_dormant_chunk(struct bytes *out) {
  struct bytes p = {.length = 0}, control = {.length = 0};
  struct words w = {{.length = 0}, {.length = 0}};
  put_varint(&p, 0); /* no sections */
  put_varints(&p, 3, 1u, 0u, ENTRY(SEG_HEAP));
  put_varint(&p, 0); /* empty stack */
  put_varints(&control, 2, 0u, 0u);
  put_blob(&p, control.data, control.length);
  const int64_t heap[] = {arc + 0x3000, 2, 8, arc + 0x3000, 64, 0, arc + 0x4000, 32, buffer, words, 8192};
  for (size_t i = 0; i < sizeof heap / sizeof *heap; i++)
    put_word(&w, heap[i]);
  put_words(&p, &w);
  put_chunk(out,
            (struct memlode_chunk_header){.sequence = 2,
                                          .raw_words = 12,
                                          .segments = 1,
                                          .first_stamp = 300,
                                          .last_stamp = 300,
                                          .flags = MEMLODE_CHUNK_FLAG_DORMANT},
            &p);
}

/* ---- JSON ---- */

static void put_sealed(struct bytes *out, const char *body) {
  char seal[32];
  snprintf(seal, sizeof seal, ",\"crc32\":\"%08x\"}\n", crc32(body, strlen(body)));
  put(out, body, strlen(body));
  put(out, seal, strlen(seal));
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  struct bytes module = {.length = 0}, thread = {.length = 0}, events = {.length = 0},
               manifest = {.length = 0};
  put_module(&module);
  write_file(argv[1], "modules/0000.mlm", &module);
  put_first_chunk(&thread);
  put_second_chunk(&thread);
  put_dormant_chunk(&thread);
  write_file(argv[1], "threads/p0000-t0000.mlt", &thread);

  char line[256];
  put_sealed(
      &events,
      "{\"event\":\"process_start\",\"process\":0,\"pid\":4711,\"command\":[\"pricing\"],\"stamp\":90");
  snprintf(line, sizeof line,
           "{\"event\":\"module_load\",\"process\":0,\"module\":0,\"load_bias\":%llu,\"stamp\":91",
           (unsigned long long)load_bias);
  put_sealed(&events, line);
  put_sealed(&events, "{\"event\":\"thread_start\",\"process\":0,\"thread\":0,\"tid\":4711,\"stamp\":95");
  put_sealed(&events, "{\"event\":\"thread_end\",\"process\":0,\"thread\":0,\"stamp\":301");
  put_sealed(&events, "{\"event\":\"process_end\",\"process\":0,\"clean\":true,\"stamp\":302");
  write_file(argv[1], "events.ndjson", &events);

  char body[1024];
  snprintf(
      body, sizeof body,
      "{\"format\":\"memlode trace\",\"version\":%d,\"writer\":\"golden\",\"command\":[\"pricing\"],"
      "\"complete\":true,\"summary\":{\"finished_unix_ms\":0,\"exit_code\":0,\"torn_segments\":0,"
      "\"unknown_words\":0,\"unregistered_threads\":0},\"threads\":[{\"process\":0,\"thread\":0,\"chunks\":3,"
      "\"bytes\":%zu,\"raw_words\":58,\"accesses\":19}],\"modules\":1,\"events\":5",
      MEMLODE_VERSION_TRACE, thread.length);
  put_sealed(&manifest, body);
  write_file(argv[1], "manifest.json", &manifest);
  return 0;
}
