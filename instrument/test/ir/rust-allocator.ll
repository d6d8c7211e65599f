; Rust's allocation calls are recorded where the program makes them, each once; names are mangled since Rust 1.87.
; RUN: %opt -passes=memlode-names,always-inline,memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

declare ptr @_RNvCs1_7___rustc11___rdl_alloc(i64, i64)
declare ptr @_RNvCs1_7___rustc13___rdl_realloc(ptr, i64, i64, i64)
declare void @_RNvCs1_7___rustc13___rdl_dealloc(ptr, i64, i64)

; The copies that machine code calls record for it.
; CHECK-LABEL: define ptr @_RNvCs1_7___rustc12___rust_alloc(
; CHECK: %p = call ptr @_RNvCs1_7___rustc11___rdl_alloc(i64 %size, i64 %align)
; CHECK: store ptr %p, ptr
define ptr @_RNvCs1_7___rustc12___rust_alloc(i64 %size, i64 %align) noinline {
  %p = call ptr @_RNvCs1_7___rustc11___rdl_alloc(i64 %size, i64 %align)
  ret ptr %p
}

define ptr @_RNvCs1_7___rustc14___rust_realloc(ptr %old, i64 %was, i64 %align, i64 %size) {
  %p = call ptr @_RNvCs1_7___rustc13___rdl_realloc(ptr %old, i64 %was, i64 %align, i64 %size)
  ret ptr %p
}

define void @_RNvCs1_7___rustc14___rust_dealloc(ptr %p, i64 %size, i64 %align) {
  call void @_RNvCs1_7___rustc13___rdl_dealloc(ptr %p, i64 %size, i64 %align)
  ret void
}

; CHECK-LABEL: define void @grow(
; CHECK-NOT: call {{.*}}__rust_
; CHECK: [[P:%.*]] = call ptr @_RNvCs1_7___rustc11___rdl_alloc(i64 64, i64 8)
; CHECK-COUNT-1: store ptr [[P]], ptr
; CHECK-NOT: store ptr [[P]]
; CHECK: [[Q:%.*]] = call ptr @_RNvCs1_7___rustc13___rdl_realloc(ptr [[P]], i64 64, i64 8, i64 128)
; CHECK-DAG: store ptr [[Q]], ptr
; CHECK-DAG: store i64 128, ptr
; CHECK: store ptr [[Q]], ptr
; CHECK: call void @_RNvCs1_7___rustc13___rdl_dealloc(ptr [[Q]], i64 128, i64 8)
; CHECK: ret void
define void @grow() {
  %p = call ptr @_RNvCs1_7___rustc12___rust_alloc(i64 64, i64 8)
  %q = call ptr @_RNvCs1_7___rustc14___rust_realloc(ptr %p, i64 64, i64 8, i64 128)
  call void @_RNvCs1_7___rustc14___rust_dealloc(ptr %q, i64 128, i64 8)
  ret void
}

; A program's own allocator is called as it stands, so that the call is there to be recorded.
; CHECK-LABEL: define void @own(
; CHECK: [[P:%.*]] = call ptr @_RNvCs1_7___rustc10___rg_alloc(i64 8, i64 8)
; CHECK: store ptr [[P]], ptr
define void @own() {
  %p = call ptr @_RNvCs1_7___rustc10___rg_alloc(i64 8, i64 8)
  ret void
}

define ptr @_RNvCs1_7___rustc10___rg_alloc(i64 %size, i64 %align) alwaysinline {
  ret ptr null
}
