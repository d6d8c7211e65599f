// Threads that end in odd ways: cancelled in a call, cancelled anywhere, detached and outliving main; and
// memory touched before main, by cleanup handlers, and by destructors of thread-local objects and of globals.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "objects.h"

int early[64], cleaned[64], local_ends[64], busy[64], late[64];

struct Early {
  Early() noexcept {
    for (int i = 0; i < 64; i++)
      early[i] = i;
  }
  ~Early() {
    for (int &value : late)
      value++;
  }
};
static Early before_main __attribute__((init_priority(101)));

struct Local {
  int number = 0;
  ~Local() { local_ends[number % 64]++; }
};
static thread_local Local local;

static std::atomic<int> started, over;

static void clean(void *number) { cleaned[reinterpret_cast<long>(number) % 64]++; }

static void *cancelled_in_a_call(void *number) {
  local.number = static_cast<int>(reinterpret_cast<long>(number));
  pthread_cleanup_push(clean, number);
  started++;
  for (;;) {
    busy[local.number % 64]++;
    usleep(10);
  }
  pthread_cleanup_pop(0);
  return nullptr;
}

static void *cancelled_anywhere(void *number) {
  local.number = static_cast<int>(reinterpret_cast<long>(number));
  pthread_cleanup_push(clean, number);
  started++;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  for (volatile long i = 0;; i = i + 1)
    busy[i % 64] = busy[(i + 7) % 64];
  pthread_cleanup_pop(0);
  return nullptr;
}

static void *outlives_main(void *) {
  usleep(50000);
  for (int i = 0; i < 1000; i++)
    late[i % 64]++;
  over = 1;
  return nullptr;
}

int main(int argc, char **) {
  OBJECT(early);
  OBJECT(cleaned);
  OBJECT(local_ends);
  OBJECT(busy);
  OBJECT(late);
  for (long round = 0; round < 8; round++) {
    pthread_t threads[2];
    int before = started;
    pthread_create(&threads[0], nullptr, cancelled_in_a_call, reinterpret_cast<void *>(2 * round));
    pthread_create(&threads[1], nullptr, argc > 1 ? cancelled_anywhere : cancelled_in_a_call,
                   reinterpret_cast<void *>(2 * round + 1));
    while (started < before + 2)
      usleep(100);
    usleep(500);
    for (pthread_t thread : threads) {
      pthread_cancel(thread);
      pthread_join(thread, nullptr);
    }
  }
  long sum = 0;
  for (int i = 0; i < 64; i++)
    sum += early[i] + 100 * cleaned[i] + 10000 * local_ends[i];
  std::printf("%ld\n", sum);
  std::fflush(stdout);
  pthread_t thread;
  pthread_create(&thread, nullptr, outlives_main, nullptr);
  pthread_detach(thread);
  pthread_exit(nullptr); // main ends first
}
