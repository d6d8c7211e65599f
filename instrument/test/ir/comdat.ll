; Anchors live and die with the copy of the function that the linker keeps; the image's constructor comes once.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK: $__memlode_image_load_1 = comdat any
; CHECK: @memlode.anchors.inlined = private constant {{.*}} section "memlode_seg", comdat($inlined), align 8
; CHECK: @memlode.anchors.own = private constant
; CHECK-NOT: comdat
; CHECK-SAME: section "memlode_seg", align 8
; CHECK: @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 0, ptr @__memlode_image_load_1, ptr @__memlode_image_load_1 }]
; CHECK: define linkonce_odr hidden void @__memlode_image_load_1() #{{[0-9]+}} comdat
; CHECK: load volatile i8, ptr @__memlode_abi_2_link_with_memlode_cc
; CHECK: call void @__memlode_module_load(ptr @__memlode_image_load_1)

$inlined = comdat any
define linkonce_odr void @inlined(ptr %p) comdat {
  store i32 1, ptr %p
  ret void
}
define void @own(ptr %p) {
  store i32 1, ptr %p
  ret void
}
