; The intrinsics of several types that LLVM 19 does not have.
; REQUIRES: llvm-22
; RUN: %opt -passes=memlode,verify -disable-output -pass-remarks-missed=memlode %s 2>&1 | %FileCheck %s --check-prefix=TOLD --allow-empty --implicit-check-not=remark
; RUN: %opt -passes=memlode,verify -S -o - %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; TOLD-NOT: not recorded

; CHECK-LABEL: define void @patterns(
; CHECK: mul i64 %n, 4
; CHECK: call void @llvm.experimental.memset.pattern
define void @patterns(ptr %p, <4 x ptr> %each, <4 x i1> %m, i64 %n) {
  call void @llvm.experimental.memset.pattern.p0.i32.i64(ptr %p, i32 7, i64 %n, i1 false)
  call void @llvm.experimental.vector.histogram.uadd.sat.v4p0.i32(<4 x ptr> %each, i32 1, <4 x i1> %m)
  call void @llvm.experimental.vector.histogram.umax.v4p0.i32(<4 x ptr> %each, i32 1, <4 x i1> %m)
  call void @llvm.experimental.vector.histogram.umin.v4p0.i32(<4 x ptr> %each, i32 1, <4 x i1> %m)
  ret void
}

; CHECK-LABEL: define <4 x i32> @first_fault(
; CHECK: icmp ult <4 x i64> <i64 0, i64 1, i64 2, i64 3>
define <4 x i32> @first_fault(ptr %p, <4 x i1> %m, i32 %n) {
  %r = call {<4 x i32>, i32} @llvm.vp.load.ff.v4i32.p0(ptr %p, <4 x i1> %m, i32 %n)
  %v = extractvalue {<4 x i32>, i32} %r, 0
  ret <4 x i32> %v
}
