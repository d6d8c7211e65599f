; LLVM's inliner forbids calls in a cycle of functions that it has inlined before, those that `flatten` demands as well. That is
; no valid code, but nothing that a user could change: what the inliner said stays.
; RUN: %opt -disable-verify -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare void @next(ptr)

; CHECK-LABEL: define void @cycle(
; CHECK: call void @next(ptr %p) #[[CALL:[0-9]+]]
; CHECK: call void @next(ptr %p) #[[FLAT:[0-9]+]]
; CHECK-DAG: attributes #[[CALL]] = { noinline }
; CHECK-DAG: attributes #[[FLAT]] = { alwaysinline }
define void @cycle(ptr %p) {
  store i64 1, ptr %p
  call void @next(ptr %p) #0
  call void @next(ptr %p) #1
  ret void
}

attributes #0 = { alwaysinline noinline }
attributes #1 = { alwaysinline }
