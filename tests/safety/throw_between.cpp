struct Local {
  int &value;
  ~Local() { value++; }
};

static int passed;

extern "C" int between(int (*leaf)(int), int n) {
  Local local{passed};
  return leaf(n) + 1;
}
