; Where the cursor is tested for room, and where not.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; Once at the entry serves all blocks behind it.
; CHECK-LABEL: define void @diamond(
; CHECK: call preserve_allcc ptr @memlode.refill
; CHECK-NOT: call preserve_allcc
; CHECK: ret void
define void @diamond(ptr %p, i1 %c) {
  br i1 %c, label %then, label %else
then:
  store i32 1, ptr %p
  br label %end
else:
  store i64 2, ptr %p
  br label %end
end:
  store i8 3, ptr %p
  ret void
}

; Once in a cycle, in its first segment.
; CHECK-LABEL: define void @loop(
; CHECK: call preserve_allcc ptr @memlode.refill
; Behind words: those of the loop might be derived from them.
; CHECK: call preserve_allcc ptr @memlode.more
; CHECK-NOT: call preserve_allcc
; CHECK: ret void
define void @loop(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %tail ]
  %q = getelementptr i32, ptr %p, i64 %i
  store i32 1, ptr %q
  %odd = trunc i64 %i to i1
  br i1 %odd, label %more, label %tail
more:
  store i32 2, ptr %p
  br label %tail
tail:
  store i32 3, ptr %p
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  ret void
}

; A loop without accesses needs nothing.
; CHECK-LABEL: define i64 @silent(
; CHECK: call preserve_allcc ptr @memlode.refill
; CHECK: head:
; CHECK-NOT: @__memlode
; CHECK: end:
define i64 @silent(ptr %p, i64 %n) {
entry:
  store i32 1, ptr %p
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %next = add i64 %i, 3
  %done = icmp ugt i64 %next, %n
  br i1 %done, label %end, label %head
end:
  ret i64 %next
}

; After a call another function has used the room.
; CHECK-LABEL: define void @call(
; CHECK: call preserve_allcc ptr @memlode.refill
; CHECK: call void @other()
; CHECK: call preserve_allcc ptr @memlode.refill
declare void @other()
define void @call(ptr %p) {
  store i32 1, ptr %p
  call void @other()
  store i32 1, ptr %p
  ret void
}
