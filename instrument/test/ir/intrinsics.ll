; Every intrinsic of x86 and of all targets that may touch memory is recorded, or stands in the table of those that are
; not, with the reason: LLVM's own list is gone through (every/EveryIntrinsic.cpp). Those that have several types are
; called here. What is left cannot be called at will, or names no memory.
; RUN: %opt -load-pass-plugin=%every -passes=memlode-every-intrinsic,memlode,verify -S -o %t.ll -pass-remarks-missed=memlode %s 2> %t.txt
; RUN: %if llvm-22 %{ %FileCheck %s --input-file=%t.txt --check-prefixes=LIST,LLVM22 --implicit-check-not="not called" --implicit-check-not="this intrinsic touches" %}
; RUN: %if !llvm-22 %{ %FileCheck %s --input-file=%t.txt --check-prefixes=LIST,LLVM19 --implicit-check-not="not called" --implicit-check-not="this intrinsic touches" %}

; LLVM19-DAG: not called: llvm.call.preallocated.setup
; LIST-DAG: not called: llvm.callbr.landingpad
; LIST-DAG: not called: llvm.coro.alloca.alloc
; LIST-DAG: not called: llvm.coro.id{{$}}
; LIST-DAG: not called: llvm.coro.suspend.async
; LIST-DAG: not called: llvm.coro.suspend.retcon
; LIST-DAG: not called: llvm.experimental.deoptimize
; LIST-DAG: not called: llvm.experimental.gc.statepoint
; LIST-DAG: not called: llvm.experimental.patchpoint
; LIST-DAG: not called: llvm.gcread
; LIST-DAG: not called: llvm.gcroot
; LIST-DAG: not called: llvm.gcwrite
; LIST-DAG: not called: llvm.get.dynamic.area.offset
; LIST-DAG: not called: llvm.lifetime.end
; LIST-DAG: not called: llvm.lifetime.start
; LIST-DAG: not called: llvm.loop.decrement
; LIST-DAG: not called: llvm.loop.decrement.reg
; LIST-DAG: not called: llvm.read_register
; LIST-DAG: not called: llvm.read_volatile_register
; LIST-DAG: not called: llvm.set.loop.iterations
; LLVM22-DAG: not called: llvm.stackaddress
; LIST-DAG: not called: llvm.stacksave
; LIST-DAG: not called: llvm.start.loop.iterations
; LIST-DAG: not called: llvm.test.set.loop.iterations
; LIST-DAG: not called: llvm.test.start.loop.iterations
; LIST-DAG: not called: llvm.write_register
; LLVM22-DAG: not called: llvm.experimental.memset.pattern
; LLVM22-DAG: not called: llvm.experimental.vector.histogram.uadd.sat
; LLVM22-DAG: not called: llvm.experimental.vector.histogram.umax
; LLVM22-DAG: not called: llvm.experimental.vector.histogram.umin
; LLVM22-DAG: not called: llvm.vp.load.ff
; LIST: {{[3-9][0-9][0-9]}} intrinsics are called

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define void @lanes(ptr %p, <4 x ptr> %each, <4 x i32> %v, <4 x i1> %m, i32 %n, i64 %far) {
  %a = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %p, i32 4, <4 x i1> %m, <4 x i32> %v)
  call void @llvm.masked.store.v4i32.p0(<4 x i32> %a, ptr %p, i32 4, <4 x i1> %m)
  %b = call <4 x i32> @llvm.masked.gather.v4i32.v4p0(<4 x ptr> %each, i32 4, <4 x i1> %m, <4 x i32> %v)
  call void @llvm.masked.scatter.v4i32.v4p0(<4 x i32> %b, <4 x ptr> %each, i32 4, <4 x i1> %m)
  %c = call <4 x i32> @llvm.masked.expandload.v4i32(ptr %p, <4 x i1> %m, <4 x i32> %v)
  call void @llvm.masked.compressstore.v4i32(<4 x i32> %c, ptr %p, <4 x i1> %m)
  %d = call <4 x i32> @llvm.vp.load.v4i32.p0(ptr %p, <4 x i1> %m, i32 %n)
  call void @llvm.vp.store.v4i32.p0(<4 x i32> %d, ptr %p, <4 x i1> %m, i32 %n)
  %e = call <4 x i32> @llvm.vp.gather.v4i32.v4p0(<4 x ptr> %each, <4 x i1> %m, i32 %n)
  call void @llvm.vp.scatter.v4i32.v4p0(<4 x i32> %e, <4 x ptr> %each, <4 x i1> %m, i32 %n)
  %f = call <4 x i32> @llvm.experimental.vp.strided.load.v4i32.p0.i64(ptr %p, i64 %far, <4 x i1> %m, i32 %n)
  call void @llvm.experimental.vp.strided.store.v4i32.p0.i64(<4 x i32> %f, ptr %p, i64 %far, <4 x i1> %m, i32 %n)
  call void @llvm.experimental.vector.histogram.add.v4p0.i32(<4 x ptr> %each, i32 1, <4 x i1> %m)
  %g = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr %p, i64 %far, i1 false, i32 2, i32 3)
  call void @llvm.matrix.column.major.store.v6f32.i64(<6 x float> %g, ptr %p, i64 %far, i1 false, i32 2, i32 3)
  ret void
}

define void @runs(ptr %p, ptr %q, i64 %n, ...) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %n, i1 false)
  call void @llvm.memcpy.inline.p0.p0.i64(ptr %p, ptr %q, i64 16, i1 false)
  call void @llvm.memset.inline.p0.i64(ptr %p, i8 0, i64 16, i1 false)
  call void @llvm.memcpy.element.unordered.atomic.p0.p0.i64(ptr align 4 %p, ptr align 4 %q, i64 %n, i32 4)
  call void @llvm.memmove.element.unordered.atomic.p0.p0.i64(ptr align 4 %p, ptr align 4 %q, i64 %n, i32 4)
  call void @llvm.memset.element.unordered.atomic.p0.i64(ptr align 4 %p, i8 0, i64 %n, i32 4)
  call void @llvm.va_start.p0(ptr %p)
  call void @llvm.va_copy.p0(ptr %q, ptr %p)
  call void @llvm.va_end.p0(ptr %p)
  ret void
}

define ptr @rest(ptr %p, i64 %n) {
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  %i = call ptr @llvm.invariant.start.p0(i64 8, ptr %p)
  call void @llvm.invariant.end.p0(ptr %i, i64 8, ptr %p)
  call void @llvm.stackrestore.p0(ptr %p)
  %slot = alloca ptr
  call void @llvm.stackprotector(ptr %p, ptr %slot)
  call void @llvm.init.trampoline(ptr %p, ptr @runs, ptr %slot)
  %r = call ptr @llvm.load.relative.i64(ptr %p, i64 %n)
  ret ptr %r
}

define i32 @atomics(ptr %p, i32 %v) {
  %a = call i8 @llvm.x86.atomic.add.cc.i32(ptr %p, i32 %v, i32 4)
  %b = call i8 @llvm.x86.atomic.sub.cc.i32(ptr %p, i32 %v, i32 4)
  %c = call i8 @llvm.x86.atomic.and.cc.i32(ptr %p, i32 %v, i32 4)
  %d = call i8 @llvm.x86.atomic.or.cc.i32(ptr %p, i32 %v, i32 4)
  %e = call i8 @llvm.x86.atomic.xor.cc.i32(ptr %p, i32 %v, i32 4)
  %f = call i32 @llvm.x86.atomic.bts.i32(ptr %p, i8 1)
  %g = call i32 @llvm.x86.atomic.btc.i32(ptr %p, i8 1)
  %h = call i32 @llvm.x86.atomic.btr.i32(ptr %p, i8 1)
  %j = call i8 @llvm.x86.atomic.bts.rm.i32(ptr %p, i32 %v)
  %k = call i8 @llvm.x86.atomic.btc.rm.i32(ptr %p, i32 %v)
  %l = call i8 @llvm.x86.atomic.btr.rm.i32(ptr %p, i32 %v)
  ret i32 %h
}
