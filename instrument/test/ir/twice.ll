; A module that comes by again (compiled with the plug-in and linked with it) is not recorded twice.
; RUN: %opt -passes=memlode -S %s -o %t.once
; RUN: %opt -passes=memlode -S %t.once -o %t.twice
; RUN: %FileCheck %s --input-file=%t.twice

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK: @memlode.table = 
; CHECK-NOT: @memlode.table.
; CHECK-LABEL: define void @f(
; CHECK-COUNT-1: @__memlode_refill
; CHECK-NOT: @__memlode_refill(ptr {{%.*}}, !
define void @f(ptr %p) {
  store i32 1, ptr %p
  ret void
}
