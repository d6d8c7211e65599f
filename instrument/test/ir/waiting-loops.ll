; What is looked at in a loop that only waits acquires, and a store to it releases, though neither says so. Other loops
; on memory that others write, and stores that nobody waits for, do not.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@flag = global i32 0
@other = global i32 0
@sum = global i32 0

declare i32 @sched_yield()
declare i64 @syscall(i64, ...)
declare void @work()

; CHECK-LABEL: define void @raise(
; CHECK: rdtsc
; CHECK: store volatile i32 1, ptr @flag
; CHECK-NOT: rdtsc
; CHECK: ret void
define void @raise() {
  store volatile i32 1, ptr @flag
  store volatile i32 1, ptr @other
  store i32 1, ptr @flag
  ret void
}

; CHECK-LABEL: define void @wait(
; CHECK: load volatile i32, ptr @flag
; CHECK: lfence{{.*}}rdtsc
; CHECK: ret void
define void @wait() {
entry:
  br label %loop
loop:
  %x = load volatile i32, ptr @flag
  %y = call i32 @sched_yield()
  %c = icmp eq i32 %x, 0
  br i1 %c, label %loop, label %exit
exit:
  ret void
}

; It keeps what it saw, and asks the kernel to wait.
; CHECK-LABEL: define void @keeps(
; CHECK: load volatile i32, ptr @flag
; CHECK: lfence{{.*}}rdtsc
; CHECK: ret void
define void @keeps() {
entry:
  br label %loop
loop:
  %x = load volatile i32, ptr @flag
  store i32 %x, ptr @sum
  %y = call i64 (i64, ...) @syscall(i64 202, ptr @flag, i32 128, i32 %x)
  %c = icmp eq i32 %x, 0
  br i1 %c, label %loop, label %exit
exit:
  ret void
}

; It counts how often it looks.
; CHECK-LABEL: define void @counts_meanwhile(
; CHECK-NOT: rdtsc
; CHECK: ret void
define void @counts_meanwhile() {
entry:
  br label %loop
loop:
  %x = load volatile i32, ptr @other
  %n = load i32, ptr @sum
  %more = add i32 %n, 1
  store i32 %more, ptr @sum
  %c = icmp eq i32 %x, 0
  br i1 %c, label %loop, label %exit
exit:
  ret void
}

; It calls.
; CHECK-LABEL: define void @works_meanwhile(
; CHECK-NOT: rdtsc
; CHECK: ret void
define void @works_meanwhile() {
entry:
  br label %loop
loop:
  %x = load volatile i32, ptr @other
  call void @work()
  %c = icmp eq i32 %x, 0
  br i1 %c, label %loop, label %exit
exit:
  ret void
}

; It adds up what it sees.
; CHECK-LABEL: define i32 @adds_up(
; CHECK-NOT: rdtsc
; CHECK: ret i32
define i32 @adds_up() {
entry:
  br label %loop
loop:
  %all = phi i32 [ 0, %entry ], [ %more, %loop ]
  %x = load volatile i32, ptr @other
  %more = add i32 %all, %x
  %c = icmp eq i32 %x, 0
  br i1 %c, label %loop, label %exit
exit:
  ret i32 %more
}

; Nothing tells where one wait ends and the next begins.
; CHECK-LABEL: define void @waits_often(
; CHECK-NOT: rdtsc
; CHECK: ret void
define void @waits_often() {
entry:
  br label %turn
turn:
  %i = phi i32 [ 0, %entry ], [ %j, %next ]
  br label %loop
loop:
  %x = load volatile i32, ptr @other
  %c = icmp slt i32 %x, %i
  br i1 %c, label %loop, label %next
next:
  %j = add i32 %i, 1
  %d = icmp eq i32 %j, 10
  br i1 %d, label %exit, label %turn
exit:
  ret void
}

; The first look stands in front of the loop, which has been rotated: both acquire.
; CHECK-LABEL: define void @looks_first(
; CHECK: load volatile i32, ptr @flag
; CHECK: lfence{{.*}}rdtsc
; CHECK: load volatile i32, ptr @flag
; CHECK: lfence{{.*}}rdtsc
; CHECK: ret void
define void @looks_first() {
entry:
  %x = load volatile i32, ptr @flag
  %c = icmp eq i32 %x, 0
  br i1 %c, label %loop, label %exit
loop:
  %y = call i32 @sched_yield()
  %z = load volatile i32, ptr @flag
  %d = icmp eq i32 %z, 0
  br i1 %d, label %loop, label %exit
exit:
  ret void
}
