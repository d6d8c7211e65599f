; The entry block is split at the test for room; every fixed slot stays in front of the split, where it is one of the frame.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @use(ptr, ptr)

; CHECK-LABEL: define void @late(
; CHECK-DAG: %a = alloca i32
; CHECK-DAG: %b = alloca [4 x i32]
; CHECK: br i1
; CHECK-NOT: = alloca
define void @late(i32 %x) {
  %a = alloca i32
  store i32 %x, ptr %a
  %b = alloca [4 x i32]
  call void @use(ptr %a, ptr %b)
  ret void
}
