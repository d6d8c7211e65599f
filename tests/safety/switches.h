/* User threads: what they do is in user_threads.c, who runs when in switches.c. */
#ifndef SWITCHES_H
#define SWITCHES_H

enum { WORKERS = 5 };

/* One user thread's work. */
void work(int worker);

/* Runs all workers, on stacks of their own, and returns when they are done. They are switched by `way`:
 * "swap" (swapcontext), "jump" (siglongjmp) or "assembly"; in a timer's handler if there is one, else when a
 * worker is done. */
void run_workers(const char *way, int with_timer);

#endif
