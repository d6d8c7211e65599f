// Encodes ten blocks into four of parity with ISA-L, or with -DJERASURE with Jerasure, over and
// over. Blocks are what malloc gives: glibc's large ones all begin at the same place of a page.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA 10
#define PARITY 4
#define BLOCK (4 << 20)

#ifdef JERASURE
// As in jerasure.h and reed_sol.h.
int *reed_sol_vandermonde_coding_matrix(int data, int parity, int word_bits);
void jerasure_matrix_encode(int data, int parity, int word_bits, int *matrix, char **from, char **to,
                            int bytes);

static int *matrix;

static void prepare(void) {
  matrix = reed_sol_vandermonde_coding_matrix(DATA, PARITY, 8);
  if (matrix == NULL)
    exit(1);
}

static void encode(unsigned char **blocks) {
  jerasure_matrix_encode(DATA, PARITY, 8, matrix, (char **)blocks, (char **)&blocks[DATA], BLOCK);
}
#else
// As in isa-l/erasure_code.h.
void gf_gen_cauchy1_matrix(unsigned char *matrix, int rows, int columns);
void ec_init_tables(int columns, int rows, unsigned char *matrix, unsigned char *tables);
void ec_encode_data(int bytes, int columns, int rows, unsigned char *tables, unsigned char **data,
                    unsigned char **parity);

static unsigned char tables[32 * DATA * PARITY];

static void prepare(void) {
  unsigned char matrix[(DATA + PARITY) * DATA];
  gf_gen_cauchy1_matrix(matrix, DATA + PARITY, DATA);
  ec_init_tables(DATA, PARITY, &matrix[DATA * DATA], tables);
}

static void encode(unsigned char **blocks) {
  ec_encode_data(BLOCK, DATA, PARITY, tables, blocks, &blocks[DATA]);
}
#endif

int main(int argc, char **argv) {
  long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
  static unsigned char *blocks[DATA + PARITY];
  for (int i = 0; i < DATA + PARITY; i++) {
    blocks[i] = malloc(BLOCK);
    if (blocks[i] == NULL)
      exit(1);
    memset(blocks[i], i + 1, BLOCK);
  }
  prepare();
  unsigned sum = 0;
  for (long round = 0; round < rounds; round++) {
    blocks[0][round % BLOCK] = (unsigned char)round;
    encode(blocks);
    sum += blocks[DATA + round % PARITY][round % BLOCK];
  }
  printf("%u\n", sum);
  return 0;
}
