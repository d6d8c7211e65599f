; In Rust 1.95 a program's own allocator is __rust_alloc itself: what it does is moved to where the call can be seen.
; RUN: %opt -passes=memlode-names,always-inline,memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@next = internal global i64 4096

; The copy that machine code calls, such as the standard library, records for it.
; CHECK-LABEL: define hidden noalias ptr @_RNvCs1_7___rustc12___rust_alloc(
; CHECK: [[A:%.*]] = call {{.*}}ptr @__rg_alloc(i64 %0, i64 %1)
; CHECK: store ptr [[A]], ptr
define hidden noalias ptr @_RNvCs1_7___rustc12___rust_alloc(i64 %size, i64 allocalign %align) noinline allockind("alloc,uninitialized,aligned") allocsize(0) {
  %at = load i64, ptr @next
  %end = add i64 %at, %size
  store i64 %end, ptr @next
  %p = inttoptr i64 %at to ptr
  ret ptr %p
}

define hidden void @_RNvCs1_7___rustc14___rust_dealloc(ptr %p, i64 %size, i64 %align) noinline {
  ret void
}

; CHECK-LABEL: define void @grow(
; CHECK-NOT: call {{.*}}__rust_
; CHECK: [[P:%.*]] = call {{.*}}ptr @__rg_alloc(i64 64, i64 8)
; CHECK: store ptr [[P]], ptr
; CHECK: call void @__rg_dealloc(ptr {{.*}}, i64 64, i64 8)
; CHECK: ret void
define void @grow() {
  %p = call ptr @_RNvCs1_7___rustc12___rust_alloc(i64 64, i64 8)
  call void @_RNvCs1_7___rustc14___rust_dealloc(ptr %p, i64 64, i64 8)
  ret void
}

; What it does itself is recorded as the program's.
; CHECK-LABEL: define hidden noalias ptr @__rg_alloc(
; CHECK: store ptr @next, ptr
