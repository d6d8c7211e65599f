; Values are stored as they lie in memory, behind what reads and in front of what writes. What is in no register, too
; long, or packed otherwise than in memory has none.
; RUN: env MEMLODE_VALUES=1 MEMLODE_VERSIONS=0 %opt -passes='memlode,verify' -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; Lanes that are masked out are there, too.
; CHECK-LABEL: define <4 x i32> @masked(
; CHECK: %[[LOADED:.*]] = call <4 x i32> @llvm.masked.load
; CHECK: store <4 x i32> %[[LOADED]], ptr %{{.*}}, align 8
; CHECK-NEXT: %[[END:.*]] = getelementptr inbounds i64, ptr %[[AT:.*]], i64 6
; CHECK: ret <4 x i32>
define <4 x i32> @masked(ptr %p, <4 x i1> %m) {
  %v = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, i32 4, <4 x i1> %m, <4 x i32> zeroinitializer)
  ret <4 x i32> %v
}

; Twice as many words: before and after.
; CHECK-LABEL: define double @update(
; CHECK: %[[OLD:.*]] = atomicrmw fadd ptr %p, double 1.0{{.*}} monotonic
; CHECK: store double %[[OLD]], ptr %{{.*}}, align 8
; CHECK-NEXT: %[[NEW:.*]] = fadd double %[[OLD]], 1.0
; CHECK: store double %[[NEW]], ptr %{{.*}}, align 8
define double @update(ptr %p) {
  %old = atomicrmw fadd ptr %p, double 1.0 monotonic
  ret double %old
}

; A repeated loop tells no values, so this is none.
; CHECK-LABEL: define void @loop(
; CHECK: {{^}}head:
; CHECK: store i64 %i, ptr %{{[0-9]+}}, align 8
; CHECK: store i64 %i, ptr %q
define void @loop(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i64, ptr %p, i64 %i
  store i64 %i, ptr %q
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  ret void
}

; CHECK-LABEL: define void @without(
; CHECK-NOT: store [65 x i64] %long, ptr %{{[0-9]+}}
; CHECK-NOT: store <64 x i1> %bits, ptr %{{[0-9]+}}, align 8
; CHECK: ret void
define void @without(ptr %p, ptr %q, [65 x i64] %long, <64 x i1> %bits, <64 x i1> %m) {
  store [65 x i64] %long, ptr %p
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 64, i1 false)
  call void @llvm.masked.store.v64i1.p0(<64 x i1> %bits, ptr %p, i32 1, <64 x i1> %m)
  ret void
}

; The form before LLVM 22, which it still reads.
declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, i32, <4 x i1>, <4 x i32>)
declare void @llvm.masked.store.v64i1.p0(<64 x i1>, ptr, i32, <64 x i1>)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
