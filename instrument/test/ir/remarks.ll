; What touches memory and cannot be recorded is told, not dropped silently.
; RUN: %opt -passes=memlode -disable-output -pass-remarks-missed=memlode %s 2>&1 | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%big = type { [64 x i8] }
declare void @take(ptr byval(%big))
declare void @take_more(ptr, ...)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare void @llvm.assume(i1)
declare noalias ptr @calloc(i64, i64)

; CHECK: the access is in another address space
define i32 @segment_register(ptr addrspace(256) %p) {
  %v = load i32, ptr addrspace(256) %p
  ret i32 %v
}

; CHECK: inline assembly may touch memory
define void @clobber(ptr %p) {
  call void asm sideeffect "mfence", "~{memory},~{dirflag},~{fpsr},~{flags}"()
  call void asm sideeffect "incl ($0)", "r,~{memory},~{dirflag},~{fpsr},~{flags}"(ptr %p)
  ret void
}

; CHECK-NOT: inline assembly
; CHECK: the copy of a variadic argument
define void @by_value(ptr %p) {
  call void asm sideeffect "", "~{memory}"()
  call void @take(ptr byval(%big) %p)
  call void (ptr, ...) @take_more(ptr %p, ptr byval(%big) %p)
  ret void
}

; CHECK: the number of bytes is not known when compiling
define <vscale x 4 x i32> @scalable(ptr %p) {
  %v = load <vscale x 4 x i32>, ptr %p
  ret <vscale x 4 x i32> %v
}

; CHECK-NOT: remark:
define void @hints(ptr %p, i1 %c) {
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  call void @llvm.assume(i1 %c)
  fence seq_cst
  ret void
}
