; Read-modify-write is one access; sizes are those of the value.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; One site each: kind 2 (update), no evidence, flag 2 (atomic), those of its order, and that it only adds, in three bytes of LEB128, 4 bytes;
; then volatile (4) as well and no addition, in two bytes, 8 bytes. The lowest flag only says that there is no line.
; CHECK: @memlode.table = {{.*}}\02\00\8{{[23]}}\F0\08\04\00\00\00\00\02\00\8{{[67]}}p\08\00\00\00\00
; CHECK-LABEL: define void @count(
; CHECK: store ptr %p, ptr
; CHECK: atomicrmw add
; CHECK-NOT: store ptr %p, ptr
; CHECK: cmpxchg volatile
; CHECK: ret void
define void @count(ptr %p) {
  %a = atomicrmw add ptr %p, i32 1 seq_cst
  %b = cmpxchg volatile ptr %p, i64 0, i64 1 seq_cst seq_cst
  ret void
}
