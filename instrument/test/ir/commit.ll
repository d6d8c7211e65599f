; The cursor is stored where other code may record, and only if it moved.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @other()
declare i64 @strlen(ptr)
declare double @cbrt(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.sin.f64(double)

; Between two calls with nothing to record there is no store and no load.
; CHECK-LABEL: define void @twice(
; CHECK: call void @other()
; CHECK-NOT: @__memlode_cursor
; CHECK: call void @other()
; CHECK: @__memlode_cursor
define void @twice() {
  call void @other()
  call void @other()
  ret void
}

; A library function may be the program's own, whatever its name: the cursor is handed over to it. What has an
; instruction leaves it in its register.
; CHECK-LABEL: define double @library(
; CHECK: store i32 1, ptr %p
; CHECK: [[TLS:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__memlode_cursor)
; CHECK-NEXT: store ptr {{%.*}}, ptr [[TLS]]
; CHECK-NEXT: {{.*}}call i64 @strlen
; CHECK: @__memlode_cursor
; CHECK: store i64 %n, ptr %p
; CHECK: [[TLS:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__memlode_cursor)
; CHECK-NEXT: store ptr {{%.*}}, ptr [[TLS]]
; CHECK-NEXT: {{.*}}call double @cbrt
; CHECK: store double %r, ptr %p
; CHECK: [[TLS:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__memlode_cursor)
; CHECK-NEXT: store ptr {{%.*}}, ptr [[TLS]]
; CHECK-NEXT: {{.*}}call double @memlode.llvm.sin.f64
; CHECK: @__memlode_cursor
; CHECK-NOT: @__memlode_cursor
; CHECK: call double @llvm.sqrt
; CHECK-NOT: @__memlode_cursor
; CHECK: store double
define double @library(ptr %p, double %x) {
  store i32 1, ptr %p
  %n = call i64 @strlen(ptr %p)
  store i64 %n, ptr %p
  %r = call double @cbrt(double %x)
  store double %r, ptr %p
  %s = call double @llvm.sin.f64(double %r)
  store i32 1, ptr %p
  %t = call double @llvm.sqrt.f64(double %s)
  store double %t, ptr %p
  ret double %t
}

; A cursor that moved on one of two paths is stored.
; CHECK-LABEL: define void @maybe(
; CHECK: store ptr {{%.*}}, ptr {{%.*}}
; CHECK: call void @other()
; CHECK: then:
; CHECK: end:
; CHECK: [[MERGED:%.*]] = phi ptr
; CHECK: [[TLS:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__memlode_cursor)
; CHECK: store ptr [[MERGED]], ptr [[TLS]]
; CHECK-NEXT: call void @other()
define void @maybe(ptr %p, i1 %c) {
  call void @other()
  br i1 %c, label %then, label %end
then:
  store i32 1, ptr %p
  br label %end
end:
  call void @other()
  ret void
}

; A function that neither touches memory nor calls is left as it was.
; CHECK-LABEL: define i32 @arithmetic(
; CHECK-NOT: memlode
; CHECK: ret i32
define i32 @arithmetic(i32 %a, i32 %b) {
  %s = mul i32 %a, %b
  ret i32 %s
}
