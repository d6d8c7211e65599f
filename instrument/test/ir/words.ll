; The yardstick for benchmarks: the words of a segment, without a cursor, a test for room or another side.
; RUN: env MEMLODE_MODE=words %opt -passes='memlode,verify' -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK: @memlode.unread = linkonce_odr hidden thread_local(initialexec) global
; CHECK-NOT: @__memlode_cursor

; CHECK-LABEL: define i32 @both(
; CHECK: [[PLACE:%.*]] = call {{.*}}ptr @llvm.threadlocal.address.p0({{.*}}@memlode.unread)
; CHECK-NEXT: [[W0:%.*]] = getelementptr inbounds i64, ptr [[PLACE]], i64 0
; CHECK-NEXT: store ptr @memlode.anchors.both, ptr [[W0]]
; CHECK-NEXT: [[FRAME:%.*]] = call ptr @llvm.addressofreturnaddress
; CHECK-NEXT: [[W1:%.*]] = getelementptr inbounds i64, ptr [[PLACE]], i64 1
; CHECK-NEXT: store ptr [[FRAME]], ptr [[W1]]
; CHECK-NEXT: [[W2:%.*]] = getelementptr inbounds i64, ptr [[PLACE]], i64 2
; CHECK-NEXT: store ptr %p, ptr [[W2]]
; CHECK-NEXT: load i32, ptr %p
; CHECK-NEXT: ret i32
define i32 @both(ptr %p) {
  %v = load i32, ptr %p
  ret i32 %v
}

; What libc hands out is told by the call itself, at no place of the function.
; CHECK-LABEL: define ptr @handed(
; CHECK: store ptr @memlode.anchors.handed
define ptr @handed(ptr %text) {
  %c = load i8, ptr %text
  %copy = call ptr @strdup(ptr %text)
  ret ptr %copy
}

declare ptr @strdup(ptr)
