; A loop whose trip count is known when it begins records nothing in itself, and sides are not changed in it.
; RUN: env MEMLODE_VERSIONS=1 MEMLODE_STAMPS=0 %opt -passes='memlode,verify' -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; One record: header, count, and one word for two accesses a constant distance apart.
; CHECK-LABEL: define internal void @known.recording(
; CHECK: %[[AT:.*]] = getelementptr {{.*}}, i64 2{{$}}
; CHECK-NEXT: %[[HEADER:.*]] = getelementptr inbounds i64, ptr %[[AT]], i64 0
; CHECK-NEXT: store ptr getelementptr {{.*}}@memlode.anchors.known, i64 0, i64 1), ptr %[[HEADER]]
; CHECK-NEXT: %[[COUNT:.*]] = getelementptr inbounds i64, ptr %[[AT]], i64 1
; CHECK-NEXT: store i64 %n, ptr %[[COUNT]]
; CHECK-NEXT: %[[FIRST:.*]] = getelementptr inbounds i64, ptr %[[AT]], i64 2
; CHECK-NEXT: store ptr %p, ptr %[[FIRST]]
; CHECK-NEXT: getelementptr inbounds i64, ptr %[[AT]], i64 3
; CHECK-NEXT: br label %head
; CHECK: {{^}}head:
; CHECK-NEXT: %i = phi
; CHECK-NEXT: %q = getelementptr
; CHECK-NEXT: load i64
; CHECK-NEXT: getelementptr
; CHECK-NEXT: store i64
; CHECK-NEXT: add
; CHECK-NEXT: icmp
; CHECK-NEXT: br i1 {{.*}}, label %end, label %head
define void @known(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr { i64, i64 }, ptr %p, i64 %i
  %v = load i64, ptr %q
  %r = getelementptr i8, ptr %q, i64 8
  store i64 %v, ptr %r
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  ret void
}

; What may leave the loop in its middle forbids it.
; CHECK-LABEL: define void @calls(
; CHECK: {{^}}head:
; CHECK: store ptr {{.*}}memlode.anchors.calls
; CHECK: call void @perhaps()
declare void @perhaps()
define void @calls(ptr %p, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %q = getelementptr i64, ptr %p, i64 %i
  store i64 0, ptr %q
  call void @perhaps()
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  ret void
}

; Where it begins may come out of an earlier loop in which sides are changed, by no phi.
; CHECK-LABEL: define void @from_a_loop(
; CHECK: store ptr getelementptr {{.*}}@memlode.anchors.from_a_loop, i64 0, i64 1), ptr
; CHECK: store ptr %walked{{.*}}, ptr
; CHECK: br label %[[REPEAT:again[^.]*]]{{$}}
; CHECK: {{^}}[[REPEAT]]:
; CHECK-NOT: memlode.anchors
; CHECK: br i1 {{.*}}, label %end, label %[[REPEAT]]
define void @from_a_loop(ptr %p, i1 %more, i64 %n) {
entry:
  br label %walk
walk:
  %walked = phi ptr [ %p, %entry ], [ %next, %step ]
  br label %step
step:
  %next = load ptr, ptr %walked
  br i1 %more, label %walk, label %again
again:
  %i = phi i64 [ 0, %step ], [ %i.next, %again ]
  %q = getelementptr i64, ptr %walked, i64 %i
  store i64 0, ptr %q
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %end, label %again
end:
  ret void
}

; Sides are not changed in it.
; CHECK-LABEL: define internal void @known.dormant(
; CHECK-NOT: load volatile
; CHECK: ret void
