; What acquires is followed by a time stamp, what releases has one in front; relaxed atomics and plain accesses have none.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s
; RUN: env MEMLODE_STAMPS=0 %opt -passes=memlode -S %s | %FileCheck %s --check-prefix=OFF
; RUN: not env MEMLODE_STAMPS=yes %opt -passes=memlode -S %s 2>&1 | %FileCheck %s --check-prefix=BAD
; RUN: sed 's/x86_64-pc-linux-gnu/aarch64-linux-gnu/' %s | %opt -passes=memlode -S - | %FileCheck %s --check-prefix=ARM

; OFF-NOT: rdtsc
; OFF-NOT: __memlode_others
; BAD: memlode: MEMLODE_STAMPS is 'yes'; expected '0' or '1', or unset
; ARM-LABEL: define i32 @flag(
; ARM: dsb ishld
; ARM-SAME: isb
; ARM-SAME: mrs $0, cntvct_el0

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@guard = global i8 0
@_ZGVZ3onevE1x = global i8 0

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_trylock(ptr)
declare void @__kmpc_fork_call(ptr, i32, ptr, ...)
declare i32 @pthread_mutex_unlock(ptr)
declare ptr @malloc(i64)
declare void @take()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare void @_ZNSt6thread4joinEv(ptr)
declare ptr @start(ptr)

; Counter 1 means that there is nobody to learn from.
; CHECK-LABEL: define i32 @flag(
; CHECK: load atomic i32, ptr %p acquire
; CHECK: [[OTHERS:%.*]] = load atomic i32, ptr @__memlode_others monotonic
; CHECK: [[SOME:%.*]] = icmp ne i32 [[OTHERS]], 0
; CHECK: br i1 [[SOME]], label %[[READ:.*]], label %[[ON:.*]]{{$}}
; CHECK: [[READ]]:
; CHECK: [[NOW:%.*]] = call i64 asm sideeffect "lfence{{.*}}rdtsc
; CHECK: [[ON]]:
; CHECK: [[STAMP:%.*]] = phi i64 [ 1, {{.*}} ], [ [[NOW]], %[[READ]] ]
; CHECK: store i64 [[STAMP]]
; CHECK: ret i32
define i32 @flag(ptr %p) {
  %x = load atomic i32, ptr %p acquire, align 4
  ret i32 %x
}

; Nothing is waited for: a stamp that is too early is right.
; CHECK-LABEL: define void @others_learn(
; CHECK-NOT: lfence
; CHECK: rdtsc
; CHECK-NOT: lfence
; CHECK: store atomic i32 1, ptr %p release
; CHECK-NOT: rdtsc
; CHECK: load atomic i32, ptr %p monotonic
; CHECK: rdtsc
; CHECK: atomicrmw add ptr %p, i32 1 release
; CHECK: rdtsc
; CHECK: atomicrmw add ptr %p, i32 1 seq_cst
; CHECK-NOT: rdtsc
; CHECK: ret void
define void @others_learn(ptr %p) {
  store atomic i32 1, ptr %p release, align 4
  %a = load atomic i32, ptr %p monotonic, align 4
  %b = atomicrmw add ptr %p, i32 1 release
  %e = atomicrmw add ptr %p, i32 1 seq_cst
  fence release
  %c = load atomic i32, ptr %p syncscope("singlethread") acquire, align 4
  %d = load atomic i8, ptr @_ZGVZ3onevE1x acquire, align 1
  ret void
}

; What acquires and releases has two.
; CHECK-LABEL: define i32 @each(
; CHECK: call i64 asm sideeffect "rdtsc
; CHECK: atomicrmw
; CHECK-COUNT-4: lfence{{.*}}rdtsc
; CHECK-NOT: rdtsc
; CHECK: ret i32
define i32 @each(ptr %p) {
  %a = atomicrmw add ptr %p, i32 1 acq_rel
  %b = cmpxchg ptr %p, i32 1, i32 2 acquire monotonic
  %c = load atomic i8, ptr @guard seq_cst, align 1
  fence seq_cst
  ret i32 %a
}

; A fence alone is worth recording.
; CHECK-LABEL: define void @only_a_fence(
; CHECK: fence acquire
; CHECK: rdtsc
define void @only_a_fence() {
  fence acquire
  ret void
}

; Behind the lock, in front of the unlock.
; CHECK-LABEL: define void @locks(
; CHECK: call i32 @pthread_mutex_lock
; CHECK: lfence{{.*}}rdtsc
; CHECK: asm sideeffect "rdtsc
; CHECK: call i32 @pthread_mutex_unlock
; CHECK-NOT: rdtsc
; CHECK: ret void
define void @locks(ptr %m) {
  %a = call i32 @pthread_mutex_lock(ptr %m)
  %b = call i32 @pthread_mutex_unlock(ptr %m)
  ret void
}

; The thread is known by what it is called once it is there, also as long as nobody else records, if the handle is in the
; frame; and still when joining has made its handle forget it.
; CHECK-LABEL: define void @creates(
; CHECK-NOT: __memlode_others
; CHECK: call i32 @pthread_create
; CHECK: [[HANDLE:%.*]] = load i64, ptr %o
; CHECK: [[MADE:%.*]] = load ptr, ptr %t
; CHECK: [[DONE:%.*]] = phi ptr {{.*}}[ [[MADE]]
; CHECK: store ptr [[DONE]]
; CHECK: store atomic i32 1, ptr @__memlode_others monotonic
; CHECK: asm sideeffect "rdtsc
; CHECK-NOT: __memlode_others
; CHECK: call void @_ZNSt6thread4joinEv
; CHECK: store i64 [[HANDLE]]
; CHECK: ret void
define void @creates(ptr %o) {
  %t = alloca i64
  %a = call i32 @pthread_create(ptr %t, ptr null, ptr @start, ptr null)
  call void @_ZNSt6thread4joinEv(ptr %o)
  ret void
}

; Any other memory may be gone: the new thread may free it. It is not read.
; CHECK-LABEL: define void @creates_elsewhere(
; CHECK: call i32 @pthread_create
; CHECK-NOT: load {{.*}}, ptr %t
; CHECK: [[DONE:%.*]] = select i1 {{%.*}}, i64 1, i64 0
; CHECK: store i64 [[DONE]]
; CHECK: ret void
define void @creates_elsewhere(ptr %t) {
  %a = call i32 @pthread_create(ptr %t, ptr null, ptr @start, ptr null)
  ret void
}

; A call in tail position whose return has to be seen.
; CHECK-LABEL: define i32 @wrapper(
; CHECK: call i32 @pthread_mutex_lock
; CHECK: rdtsc
; CHECK: ret i32
define i32 @wrapper(ptr %m) {
  %a = tail call i32 @pthread_mutex_lock(ptr %m)
  ret i32 %a
}

; The stamp stands in front of the object it is for.
; CHECK-LABEL: define ptr @allocates(
; CHECK: [[NEW:%.*]] = call ptr @malloc
; CHECK-NOT: lfence
; CHECK: rdtsc
; CHECK: store i64 {{%.*}}, ptr
; CHECK: store ptr [[NEW]]
define ptr @allocates() {
  %a = call ptr @malloc(i64 8)
  ret ptr %a
}

; An attempt that failed took nothing.
; CHECK-LABEL: define void @tries(
; CHECK: [[R:%.*]] = call i32 @pthread_mutex_trylock
; CHECK: [[TOOK:%.*]] = icmp eq i32 [[R]], 0
; CHECK: [[OBJECT:%.*]] = select i1 [[TOOK]], ptr %m, ptr null
; CHECK: store ptr [[OBJECT]]
; CHECK: lfence{{.*}}rdtsc
; CHECK: ret void
define void @tries(ptr %m) {
  %a = call i32 @pthread_mutex_trylock(ptr %m)
  ret void
}

; The region's body waits for the signal in front of the call, and the call for those at the body's ends.
; CHECK-LABEL: define void @forks(
; CHECK: store atomic i32 1, ptr @__memlode_others monotonic
; CHECK: asm sideeffect "rdtsc
; CHECK: call void {{.*}}@__kmpc_fork_call
; CHECK: lfence{{.*}}rdtsc
; CHECK: ret void
define void @forks() {
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr null, i32 0, ptr @forks.omp_outlined)
  ret void
}

; CHECK-LABEL: define internal void @forks.omp_outlined(
; CHECK: store ptr @forks.omp_outlined
; CHECK: lfence{{.*}}rdtsc
; CHECK: getelementptr{{.*}}@forks.omp_outlined, i64 1
; CHECK: asm sideeffect "rdtsc
; CHECK: ret void
define internal void @forks.omp_outlined(ptr %global, ptr %bound) {
  store i32 1, ptr @guard
  ret void
}

; The threads that run it have waited for work.
; CHECK-LABEL: define internal void @main.omp_outlined(
; CHECK: rdtsc
; CHECK: call void @take
define internal void @main.omp_outlined(ptr %a, ptr %b) {
  call void @take()
  ret void
}

@kept = global ptr @main.omp_outlined
