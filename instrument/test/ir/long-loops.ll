; On both sides of a loop that is one record there is a stamp if it turns often, and none if it never does.
; RUN: env MEMLODE_VERSIONS=0 %opt -passes='memlode,verify' -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; CHECK-LABEL: define void @unknown(
; CHECK: %[[LONG:.*]] = icmp uge i64 {{.*}}, 4095
; CHECK: br i1 %[[LONG]], label %[[BEGINS:.*]], label %{{.*}}, !memlode.stamp
; CHECK: {{^}}[[BEGINS]]:
; CHECK: store ptr {{.*}}@memlode.anchors.unknown
; CHECK: rdtsc
; CHECK: {{^}}head:
; CHECK-NOT: memlode.anchors
; CHECK: br i1 {{.*}}, label %[[BEHIND:.*]], label %head
; CHECK: {{^}}[[BEHIND]]:
; CHECK: br i1 %[[LONG]], label %[[ENDS:.*]], label %
; CHECK: {{^}}[[ENDS]]:
; CHECK: store ptr {{.*}}@memlode.anchors.unknown
; CHECK: rdtsc
; CHECK: ret void
define void @unknown(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i64, ptr %p, i64 %i
  store i64 0, ptr %q
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  ret void
}

; CHECK-LABEL: define void @short(
; CHECK: store ptr {{.*}}@memlode.anchors.short
; CHECK-NOT: rdtsc
; CHECK: ret void
define void @short(ptr %p) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i64, ptr %p, i64 %i
  store i64 0, ptr %q
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, 4095
  br i1 %done, label %end, label %head
end:
  ret void
}
