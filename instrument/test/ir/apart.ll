; Which calls of a dormant side go to another one without asking whether recording is on again.
; RUN: env MEMLODE_VERSIONS=1 %opt -passes='memlode,verify' -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @other()
declare ptr @malloc(i64)

define internal i32 @leaf(ptr %p) {
  store i32 1, ptr %p
  ret i32 1
}

; A definition that the linker may replace.
define weak dso_local i32 @replaced(ptr %p) {
  store i32 1, ptr %p
  ret i32 1
}

; One that it may take from another module, without what is local here.
$shared = comdat any
define linkonce_odr dso_local i32 @shared(ptr %p) comdat {
  store i32 1, ptr %p
  ret i32 1
}

; One that another image may replace when the program starts.
define i32 @exported(ptr %p) {
  store i32 1, ptr %p
  ret i32 1
}

; Variable arguments cannot be passed on.
; CHECK-LABEL: define dso_local i32 @variadic(
; CHECK: {{^}}memlode.sleep:
; CHECK-NEXT: br label
define dso_local i32 @variadic(ptr %p, ...) {
  store i32 1, ptr %p
  ret i32 1
}

define dso_local void @unknown(ptr %p) {
  store i32 1, ptr %p
  call void @other()
  ret void
}

define dso_local i32 @straight(ptr %p) {
  %m = call ptr @malloc(i64 4)
  %a = call i32 @leaf(ptr %m)
  %b = call i32 @replaced(ptr %p)
  %c = call i32 @exported(ptr %p)
  ret i32 %a
}

; Recording is asked for in every round.
; CHECK-LABEL: define dso_local void @loop(
; CHECK: head.dormant:
; CHECK: call i32 @leaf.dormant(
; CHECK: call void @other()
; CHECK: call i32 @leaf(
define dso_local void @loop(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %a = call i32 @leaf(ptr %p)
  call void @other()
  %b = call i32 @leaf(ptr %p)
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  ret void
}

; CHECK-LABEL: define internal i32 @straight.dormant(
; CHECK: call i32 @leaf.dormant(
; CHECK: call i32 @replaced(
; CHECK: call i32 @exported(

; What another module does may switch recording on, and what calls it.
; CHECK-LABEL: define internal void @behind_unknown.dormant(
; CHECK: call i32 @leaf.dormant(
; CHECK: call void @unknown.dormant(
; CHECK: call i32 @leaf(
define dso_local void @behind_unknown(ptr %p, i1 %c) {
  %a = call i32 @leaf(ptr %p)
  br i1 %c, label %then, label %end
then:
  call void @unknown(ptr %p)
  br label %end
end:
  %b = call i32 @leaf(ptr %p)
  ret void
}

; CHECK-LABEL: define internal i32 @recursive.dormant(
; CHECK: call i32 @recursive(
; CHECK: call i32 @leaf.dormant(
define dso_local i32 @recursive(ptr %p) {
  %v = load i32, ptr %p
  %zero = icmp eq i32 %v, 0
  br i1 %zero, label %end, label %down
down:
  %r = call i32 @recursive(ptr %p)
  %a = call i32 @leaf(ptr %p)
  ret i32 %a
end:
  ret i32 0
}

; CHECK-LABEL: define internal i32 @calls_shared.dormant(
; CHECK: call i32 @shared(
define dso_local i32 @calls_shared(ptr %p) {
  %a = call i32 @shared(ptr %p)
  ret i32 %a
}
