// A convolution of five points, as a library: -shared -fPIC -O3. Loads of `from` meet stores to `to` where
// the two lie so that their low 12 bits agree.
void convolve(const float *from, float *to, long count) {
  for (long i = 2; i < count - 2; i++)
    to[i] =
        0.1F * from[i - 2] + 0.25F * from[i - 1] + 0.5F * from[i] + 0.25F * from[i + 1] + 0.1F * from[i + 2];
}
