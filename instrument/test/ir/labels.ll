; Interpreters: where the addresses of labels come from one table and are jumped to at once, the dormant side has
; a table of its own, and its jump leads to the recording side by the last entry. Otherwise labels are shared.
; RUN: env MEMLODE_VERSIONS=1 %opt -passes='memlode,verify' -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@own.table = internal constant [2 x ptr] [ptr blockaddress(@own, %store), ptr blockaddress(@own, %end)]
@shared.table = internal constant [2 x ptr] [ptr blockaddress(@shared, %store), ptr blockaddress(@shared, %end)]

; CHECK: @own.table = internal constant [2 x ptr] [ptr blockaddress(@own, %store), ptr blockaddress(@own, %end)]
; CHECK: @own.table.dormant = private constant [3 x ptr] [ptr blockaddress(@own, %store.dormant), ptr blockaddress(@own, %end.dormant), ptr blockaddress(@own, %memlode.wake)]
; CHECK-NOT: @shared.table.dormant

; The loop changes sides; nothing is tested where labels are.
; CHECK-LABEL: define void @own(
; CHECK: {{^}}store: {{.*}}
; CHECK-NEXT: getelementptr inbounds i64, ptr {{.*}}, i64 0
; CHECK: {{^}}next.dormant:
; CHECK-NEXT: phi
; CHECK: %[[WORD:.*]] = load volatile i64, ptr getelementptr inbounds (i8, ptr @__memlode_control, i64 128)
; CHECK-NEXT: %[[OFF:.*]] = icmp ne i64 %[[WORD]], 0
; CHECK-NEXT: %[[WHICH:.*]] = select i1 %[[OFF]], ptr %entry.of.dormant, ptr getelementptr inbounds ([3 x ptr], ptr @own.table.dormant, i64 0, i64 2)
; CHECK-NEXT: %[[LABEL:.*]] = load ptr, ptr %[[WHICH]]
; CHECK-NEXT: indirectbr ptr %[[LABEL]], [label %store.dormant, label %end.dormant, label %memlode.wake]
; CHECK: {{^}}store.dormant:
; CHECK-NEXT: store i8 0, ptr %where.dormant
; CHECK-NEXT: br label %next.dormant
define void @own(ptr %code) {
start:
  br label %next
next:
  %where = phi ptr [ %code, %start ], [ %further, %store ]
  %op = load i8, ptr %where
  %further = getelementptr i8, ptr %where, i64 1
  %entry.of = getelementptr [2 x ptr], ptr @own.table, i64 0, i8 %op
  %label = load ptr, ptr %entry.of
  indirectbr ptr %label, [label %store, label %end]
store:
  store i8 0, ptr %where
  br label %next
end:
  ret void
}

; An address goes elsewhere too.
; CHECK-LABEL: define ptr @shared(
; CHECK: indirectbr ptr {{.*}}, [label %store, label %end]
; CHECK: indirectbr ptr {{.*}}, [label %store, label %end]
; CHECK-LABEL: define void @elsewhere(
define ptr @shared(ptr %code) {
start:
  store ptr blockaddress(@shared, %end), ptr %code
  br label %next
next:
  %where = phi ptr [ %code, %start ], [ %further, %store ]
  %op = load i8, ptr %where
  %further = getelementptr i8, ptr %where, i64 1
  %entry.of = getelementptr [2 x ptr], ptr @shared.table, i64 0, i8 %op
  %label = load ptr, ptr %entry.of
  indirectbr ptr %label, [label %store, label %end]
store:
  store i8 0, ptr %where
  br label %next
end:
  ret ptr %where
}

define void @elsewhere() {
  ret void
}
