; One segment: a header, the frame, the addresses, and one move of the cursor.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK: @memlode.anchors.move = private constant [1 x { i32, i32 }]
; CHECK-SAME: section "memlode_seg", align 8
; CHECK: @__memlode_cursor = external thread_local(initialexec) global ptr
; CHECK: @memlode.table = private constant [{{[0-9]+}} x i8] c"MLTB\02\00\04\00
; CHECK-SAME: section "memlode_tab", align 8

; CHECK-LABEL: define void @move(
; CHECK: [[TLS:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__memlode_cursor)
; CHECK: [[OLD:%.*]] = load ptr, ptr [[TLS]]
; CHECK: and i64 {{%.*}}, 65536
; CHECK: br i1 {{%.*}}, label %[[COLD:.*]], label %[[WARM:[0-9]+]], !prof
; CHECK: [[NEW:%.*]] = call preserve_allcc ptr @memlode.refill(ptr [[OLD]])
; CHECK: [[CURSOR:%.*]] = phi ptr
; CHECK: [[W0:%.*]] = getelementptr inbounds i64, ptr [[CURSOR]], i64 0
; CHECK: store ptr @memlode.anchors.move, ptr [[W0]]
; CHECK: [[FRAME:%.*]] = call ptr @llvm.addressofreturnaddress
; CHECK: [[W1:%.*]] = getelementptr inbounds i64, ptr [[CURSOR]], i64 1
; CHECK: store ptr [[FRAME]], ptr [[W1]]
; CHECK: [[W2:%.*]] = getelementptr inbounds i64, ptr [[CURSOR]], i64 2
; CHECK: store ptr %from, ptr [[W2]]
; CHECK: load i32, ptr %from
; CHECK: [[W3:%.*]] = getelementptr inbounds i64, ptr [[CURSOR]], i64 3
; CHECK: store ptr %to, ptr [[W3]]
; CHECK: store i32 {{%.*}}, ptr %to
; CHECK: [[W4:%.*]] = getelementptr inbounds i64, ptr [[CURSOR]], i64 4
; CHECK: store ptr [[W4]], ptr
; CHECK-NEXT: ret void
define void @move(ptr %to, ptr %from) {
  %v = load i32, ptr %from
  store i32 %v, ptr %to
  ret void
}
