; Functions that are left alone, each with a remark that says why.
; RUN: %opt -passes=memlode -S %s -pass-remarks-missed=memlode 2>%t | %FileCheck %s
; RUN: %FileCheck %s --check-prefix=REMARK --input-file=%t

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-NOT: @memlode.anchors
; CHECK: @memlode.anchors.recorded =
; CHECK-NOT: @memlode.anchors.{{[a-z]+}} =
; CHECK: define void @recorded

define void @recorded(ptr %p) {
  store i32 1, ptr %p
  ret void
}

; REMARK: function not recorded: a naked function has no frame to work in
define void @bare() naked {
  store i32 1, ptr @chosen
  unreachable
}

; REMARK: function not recorded: its source asks not to be instrumented
define void @quiet(ptr %p) disable_sanitizer_instrumentation {
  store i32 1, ptr %p
  ret void
}

; A copy for the inliner only; the real one is another module's.
define available_externally void @elsewhere(ptr %p) {
  store i32 1, ptr %p
  ret void
}

; REMARK: function not recorded: it resolves an ifunc before the image is relocated
@fast = ifunc void (ptr), ptr @resolver
define ptr @resolver() {
  store i32 1, ptr @chosen
  ret ptr @recorded
}
@chosen = global i32 0

; REMARK: function not recorded: its calling convention
define ghccc void @stg(ptr %p) {
  store i32 1, ptr %p
  ret void
}
