; Addresses a constant distance apart take one word: by offsets of one base, and by scalar evolution.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s
; RUN: env MEMLODE_DERIVE=0 %opt -passes=memlode -S %s | %FileCheck %s --check-prefix=EACH

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; Header, frame, one address.
; CHECK-LABEL: define i32 @members(
; CHECK: store ptr %p, ptr
; CHECK-NOT: store ptr %q
; CHECK: [[END:%.*]] = getelementptr inbounds i64, ptr {{%.*}}, i64 3
; CHECK: store ptr [[END]], ptr
; EACH-LABEL: define i32 @members(
; EACH: store ptr %p, ptr
; EACH: store ptr %q, ptr
define i32 @members(ptr %p) {
  %a = load i32, ptr %p
  %q = getelementptr i8, ptr %p, i64 12
  %b = load i32, ptr %q
  store i32 %a, ptr %p
  %s = add i32 %a, %b
  ret i32 %s
}

; CHECK-LABEL: define i32 @neighbours(
; CHECK: store ptr %left, ptr
; CHECK-NOT: store ptr %right, ptr
; CHECK: ret i32
; EACH-LABEL: define i32 @neighbours(
; EACH: store ptr %left, ptr
; EACH: store ptr %right, ptr
define i32 @neighbours(ptr %p, i64 %i) {
  %j = add nsw i64 %i, 3
  %left = getelementptr inbounds i32, ptr %p, i64 %i
  %right = getelementptr inbounds i32, ptr %p, i64 %j
  %a = load i32, ptr %left
  %b = load i32, ptr %right
  %s = add i32 %a, %b
  ret i32 %s
}

; Not across a call: whatever it records comes between.
; CHECK-LABEL: define void @apart(
; CHECK: store ptr %p, ptr
; CHECK: call void @other()
; CHECK: store ptr %p, ptr
; CHECK: store i32 2, ptr %p
declare void @other()
define void @apart(ptr %p) {
  store i32 1, ptr %p
  call void @other()
  store i32 2, ptr %p
  ret void
}

@counter = thread_local global [2 x i32] zeroinitializer
; Every mention of a thread's variable is a value of its own.
; CHECK-LABEL: define void @threads(
; CHECK: store ptr %a, ptr
; CHECK-NOT: store ptr %c, ptr
; CHECK: ret void
declare ptr @llvm.threadlocal.address.p0(ptr)
define void @threads() {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @counter)
  store i32 1, ptr %a
  %b = call ptr @llvm.threadlocal.address.p0(ptr @counter)
  %c = getelementptr i8, ptr %b, i64 4
  store i32 2, ptr %c
  ret void
}
