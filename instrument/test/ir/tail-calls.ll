; Calls in tail position stay there: exit and store of the cursor come first, nothing comes after.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare i32 @next(ptr)
declare noalias ptr @malloc(i64)
declare void @free(ptr)

; CHECK-LABEL: define i32 @plain(
; CHECK: store i32 1, ptr %p
; CHECK: [[TLS:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__memlode_cursor)
; CHECK-NEXT: store ptr {{%.*}}, ptr [[TLS]]
; CHECK-NEXT: %r = tail call i32 @next(ptr %p)
; CHECK-NEXT: ret i32 %r
define i32 @plain(ptr %p) {
  store i32 1, ptr %p
  %r = tail call i32 @next(ptr %p)
  ret i32 %r
}

; CHECK-LABEL: define i32 @must(
; CHECK: %r = musttail call i32 @next(ptr %p)
; CHECK-NEXT: ret i32 %r
define i32 @must(ptr %p) {
  store i32 1, ptr %p
  %r = musttail call i32 @next(ptr %p)
  ret i32 %r
}

; The code generator copies a shared return to such calls only if it is bare, so the copies are made here.
; CHECK-LABEL: define i32 @shared(
; CHECK: tail call i32 @next(ptr %p)
; CHECK-NEXT: ret i32
; CHECK: tail call i32 @next(ptr null)
; CHECK-NEXT: ret i32
define i32 @shared(ptr %p, i32 %k) {
entry:
  switch i32 %k, label %end [ i32 1, label %one
                              i32 2, label %two ]
one:
  %a = tail call i32 @next(ptr %p)
  br label %end
two:
  %b = tail call i32 @next(ptr null)
  br label %end
end:
  %r = phi i32 [ %a, %one ], [ %b, %two ], [ 0, %entry ]
  ret i32 %r
}

; The result is not the call's: no tail position, the exit comes last.
; CHECK-LABEL: define i32 @other(
; CHECK: tail call i32 @next(ptr %p)
; CHECK: @memlode.anchors.other, i64 0, i64 1)
; CHECK: ret i32 7
define i32 @other(ptr %p) {
  %r = tail call i32 @next(ptr %p)
  store i32 %r, ptr %p
  ret i32 7
}

; An object's birth is known only after the call.
; CHECK-LABEL: define ptr @birth(
; CHECK: %r = tail call ptr @malloc(i64 %n)
; CHECK: store ptr %r, ptr
; CHECK: store i64 %n, ptr
define ptr @birth(i64 %n) {
  %r = tail call ptr @malloc(i64 %n)
  ret ptr %r
}

; Its end is known before.
; CHECK-LABEL: define void @death(
; CHECK: store ptr %p, ptr
; CHECK: tail call void @free(ptr %p)
; CHECK-NEXT: ret void
define void @death(ptr %p) {
  tail call void @free(ptr %p)
  ret void
}

; What returns the address of its result cannot end in a jump to what does not, nor what was given no room on the
; stack in a jump to what needs some: the exit comes last. Otherwise the callee takes the caller's place.
declare void @fills(ptr)
declare void @makes(ptr sret(i64))
declare void @seven(ptr, ptr, ptr, ptr, ptr, ptr, ptr)

; CHECK-LABEL: define void @result(
; CHECK: tail call void @fills(ptr %r)
; CHECK: @memlode.anchors.result, i64 0, i64 1)
; CHECK: ret void
define void @result(ptr sret(i64) %r) {
  tail call void @fills(ptr %r)
  ret void
}

; CHECK-LABEL: define void @result_of_another(
; CHECK: tail call void @makes(ptr sret(i64) %r)
; CHECK-NEXT: ret void
define void @result_of_another(ptr sret(i64) %r) {
  store i32 1, ptr @counter
  tail call void @makes(ptr sret(i64) %r)
  ret void
}

; CHECK-LABEL: define void @on_the_stack(
; CHECK: tail call void @seven(
; CHECK: @memlode.anchors.on_the_stack, i64 0, i64 1)
; CHECK: ret void
define void @on_the_stack(ptr %p) {
  tail call void @seven(ptr %p, ptr %p, ptr %p, ptr %p, ptr %p, ptr %p, ptr %p)
  ret void
}

; CHECK-LABEL: define void @stack_to_stack(
; CHECK: tail call void @seven(
; CHECK-NEXT: ret void
define void @stack_to_stack(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e, ptr %f, ptr %g) {
  store i32 1, ptr @counter
  tail call void @seven(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e, ptr %f, ptr %g)
  ret void
}

@counter = global i32 0
