// One array: -DNAME=samples -DBYTES=4096.
_Alignas(16) char NAME[BYTES] = {1};
