; Loads that expand and stores that compress touch as many elements as lanes are set.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare <8 x i32> @llvm.masked.expandload.v8i32(ptr, <8 x i1>, <8 x i32>)
declare void @llvm.masked.compressstore.v8i32(<8 x i32>, ptr, <8 x i1>)

; CHECK-LABEL: define void @pack(
; CHECK: [[LANES:%.*]] = bitcast <8 x i1> %m to i8
; CHECK: [[BITS:%.*]] = zext i8 [[LANES]] to i64
; CHECK: [[COUNT:%.*]] = call i64 @llvm.ctpop.i64(i64 [[BITS]])
; CHECK: [[BYTES:%.*]] = mul i64 [[COUNT]], 4
; CHECK: store i64 [[BYTES]], ptr
; CHECK: call <8 x i32> @llvm.masked.expandload
define void @pack(ptr %to, ptr %from, <8 x i1> %m) {
  %v = call <8 x i32> @llvm.masked.expandload.v8i32(ptr %from, <8 x i1> %m, <8 x i32> zeroinitializer)
  call void @llvm.masked.compressstore.v8i32(<8 x i32> %v, ptr %to, <8 x i1> %m)
  ret void
}
