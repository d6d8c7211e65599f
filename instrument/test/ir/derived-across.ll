; An address that an earlier segment wrote, on every path there and with no call behind it, takes no word.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @other()

; CHECK-LABEL: define void @diamond(
; CHECK: store ptr %p, ptr
; CHECK-LABEL: left:
; CHECK-NOT: store ptr %q, ptr
; CHECK-LABEL: join:
; CHECK-NOT: store ptr %p, ptr
; CHECK: ret void
define void @diamond(ptr %p, i1 %c) {
  %q = getelementptr i8, ptr %p, i64 12
  store i32 1, ptr %p
  br i1 %c, label %left, label %join
left:
  store i32 2, ptr %q
  br label %join
join:
  store i32 3, ptr %p
  ret void
}

; One of the two paths has no such segment.
; CHECK-LABEL: define void @one_side(
; CHECK-LABEL: join:
; CHECK: store ptr %p, ptr
; CHECK: store i32 3, ptr %p
define void @one_side(ptr %p, i1 %c) {
  br i1 %c, label %left, label %join
left:
  store i32 2, ptr %p
  br label %join
join:
  store i32 3, ptr %p
  ret void
}

; A call on one path is enough: it may come back here in another frame.
; CHECK-LABEL: define void @call_on_a_path(
; CHECK-LABEL: join:
; CHECK: store ptr %p, ptr
; CHECK: store i32 3, ptr %p
define void @call_on_a_path(ptr %p, i1 %c) {
  store i32 1, ptr %p
  br i1 %c, label %left, label %join
left:
  call void @other()
  br label %join
join:
  store i32 3, ptr %p
  ret void
}

; In a loop the address from in front of it holds in every round, if no round calls.
; CHECK-LABEL: define void @invariant(
; CHECK-LABEL: loop:
; CHECK-NOT: store ptr %p, ptr
; CHECK: store i64 %i, ptr %p
define void @invariant(ptr %p, i64 %n) {
  store i64 0, ptr %p
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  store i64 %i, ptr %p
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define void @calling_loop(
; CHECK-LABEL: loop:
; CHECK: store ptr %p, ptr
; CHECK: store i64 %i, ptr %p
define void @calling_loop(ptr %p, i64 %n) {
  store i64 0, ptr %p
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  store i64 %i, ptr %p
  call void @other()
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; A phi is another value in each round: the segment in front of the loop knows only the first.
; CHECK-LABEL: define void @walk(
; CHECK-LABEL: loop:
; CHECK: store ptr %at, ptr
; CHECK: store i8 0, ptr %at
; CHECK-LABEL: even:
; CHECK-NOT: store ptr %near, ptr
; CHECK: store i8 1, ptr %near
define void @walk(ptr %p, ptr %end) {
  store i8 7, ptr %p
  br label %loop
loop:
  %at = phi ptr [ %p, %0 ], [ %next, %again ]
  store i8 0, ptr %at
  %address = ptrtoint ptr %at to i64
  %bit = trunc i64 %address to i1
  br i1 %bit, label %again, label %even
even:
  %near = getelementptr i8, ptr %at, i64 4
  store i8 1, ptr %near
  br label %again
again:
  %next = getelementptr i8, ptr %at, i64 16
  %done = icmp eq ptr %next, %end
  br i1 %done, label %out, label %loop
out:
  ret void
}
