; A function twice: the side that records and the one that does not, and where control changes between them.
; RUN: env MEMLODE_VERSIONS=1 %opt -passes='memlode,verify' -S %s -o %t.ll -pass-remarks-missed=memlode 2> %t.remarks
; RUN: %FileCheck %s --input-file=%t.ll
; RUN: %FileCheck %s --input-file=%t.remarks --check-prefix=REMARK

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

; Recording tests nothing a second time.
; CHECK-LABEL: define internal void @leaf.recording(
; CHECK-NOT: 65536
; CHECK: store ptr @memlode.anchors.leaf
; CHECK: store i32 1, ptr %p
; CHECK: ret void
define void @leaf(ptr %p) {
  store i32 1, ptr %p
  ret void
}

; In a loop: what comes from the other side meets what comes from the front. Nothing is tested twice.
; CHECK-LABEL: define i64 @loop(
; CHECK: memlode.wake:
; CHECK: call ptr @llvm.addressofreturnaddress.p0()
; CHECK: br label %[[FRONT:.*]]
; CHECK: {{^}}[[FRONT]]:
; CHECK: phi i64 {{.*}}[ 0, %
; CHECK: head.dormant:
; CHECK: load volatile i64, ptr getelementptr inbounds (i8, ptr @__memlode_control, i64 128)
; CHECK: br i1 {{.*}}, label %{{.*}}, label %memlode.wake, !prof
define i64 @loop(ptr %p, i64 %n) {
entry:
  %scale = load i64, ptr %p
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %sum = phi i64 [ 0, %entry ], [ %more, %head ]
  %square = mul i64 %i, %i
  %q = getelementptr i64, ptr %p, i64 %square
  %v = load i64, ptr %q
  %w = mul i64 %v, %scale
  %more = add i64 %sum, %w
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %head
end:
  ret i64 %more
}

; A loop without calls inside another: the outer one is enough to go to sleep, and if the inner one is over soon, to
; wake up, too.
; CHECK-LABEL: define void @nested_short(
; CHECK-COUNT-1: {{^}}memlode.wake{{[0-9]*}}:
; CHECK-NOT: {{^}}memlode.wake
; CHECK-LABEL: define void @nested(
; CHECK-COUNT-2: {{^}}memlode.wake{{[0-9]*}}:
; CHECK-COUNT-2: {{^}}memlode.sleep{{[0-9]*}}:
; CHECK-NOT: {{^}}memlode.sleep
; CHECK-LABEL: define void @dispatch(
define void @nested_short(ptr %p, i64 %n) {
entry:
  br label %outer
outer:
  %j = phi i64 [ 0, %entry ], [ %j.next, %outer.end ]
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %next, %inner ]
  %square = mul i64 %i, %i
  %q = getelementptr i64, ptr %p, i64 %square
  store i64 %j, ptr %q
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, 100
  br i1 %done, label %outer.end, label %inner
outer.end:
  %j.next = add i64 %j, 1
  %all = icmp eq i64 %j.next, %n
  br i1 %all, label %end, label %outer
end:
  ret void
}
define void @nested(ptr %p, i64 %n) {
entry:
  br label %outer
outer:
  %j = phi i64 [ 0, %entry ], [ %j.next, %outer.end ]
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %next, %inner ]
  %square = mul i64 %i, %i
  %q = getelementptr i64, ptr %p, i64 %square
  store i64 %j, ptr %q
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %outer.end, label %inner
outer.end:
  %j.next = add i64 %j, 1
  %all = icmp eq i64 %j.next, %n
  br i1 %all, label %end, label %outer
end:
  ret void
}

; A label in a table is where both sides arrive.
; CHECK: indirectbr ptr %{{.*}}, [label %first, label %second]
; CHECK: indirectbr ptr %{{.*}}, [label %first, label %second]
define void @dispatch(ptr %p) {
entry:
  br label %next
next:
  %at = load ptr, ptr %p
  indirectbr ptr %at, [label %first, label %second]
first:
  %n = phi i64 [ 1, %next ]
  store i64 %n, ptr %p
  br label %next
second:
  store ptr blockaddress(@dispatch, %first), ptr %p
  store ptr blockaddress(@dispatch, %second), ptr %p
  ret void
}

; REMARK: function records as slowly when recording is off: it has an assembly with jumps
; CHECK-LABEL: define void @jumping_asm(
; CHECK-NOT: memlode.sleep
; CHECK: @memlode.refill(
define void @jumping_asm(ptr %p) {
  store i32 1, ptr %p
  callbr void asm sideeffect "jmp ${0:l}", "!i"() to label %end [label %end]
end:
  ret void
}

; REMARK: function records as slowly when recording is off: a call in it must not be made twice
; CHECK-LABEL: define void @once(
; CHECK-NOT: memlode.sleep
; CHECK: ret void
define void @once(ptr %p) {
  store i32 1, ptr %p
  call void @unique() noduplicate
  ret void
}
declare void @unique()

; Where sides are changed at the entry alone they are functions.
; CHECK-LABEL: define internal void @leaf.dormant(
; CHECK-NEXT: store i32 1, ptr %p
; CHECK-NEXT: ret void
; CHECK-NEXT: }
; Room is enough to record; without it, a cursor below the word in memory is enough to sleep.
; CHECK-LABEL: define void @leaf(
; CHECK: and i64 {{.*}}, 65536
; CHECK: br i1 {{.*}}, label %full, label %record, !prof
; CHECK: full:
; CHECK: %[[OFF:.*]] = load volatile i64, ptr getelementptr inbounds (i8, ptr @__memlode_control, i64 128)
; CHECK-NEXT: %[[ASLEEP:.*]] = icmp ult i64 %{{.*}}, %[[OFF]]
; CHECK-NEXT: br i1 %[[ASLEEP]], label %sleep, label %ask
; CHECK: sleep:
; CHECK-NEXT: musttail call void @leaf.dormant(
; CHECK: ask:
; CHECK-NEXT: musttail call void @leaf.ask(
; CHECK: record:
; CHECK-NEXT: musttail call void @leaf.recording(
; CHECK-LABEL: define internal void @leaf.ask(
; CHECK: call preserve_allcc ptr @memlode.switch(
; CHECK: musttail call void @leaf.dormant(
; CHECK: musttail call void @leaf.recording(
