; Both ends of an invoke take the cursor back; the unwind end says whose frame is on top again.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare i32 @__gxx_personality_v0(...)
declare ptr @_Znwm(i64)
declare void @other()

; The normal edge of the first invoke is shared and gets a block of its own.
; CHECK-LABEL: define ptr @make(
; CHECK: %fresh = invoke ptr @_Znwm(i64 %n)
; CHECK-NEXT: to label %[[OWN:.*]] unwind label %pad
; CHECK: [[OWN]]:
; CHECK: load ptr, ptr
; CHECK: store ptr %fresh, ptr
; CHECK: store i64 %n, ptr
; CHECK: pad:
; CHECK-NEXT: landingpad
; CHECK-NEXT: cleanup
; CHECK: load ptr, ptr
; CHECK: call ptr @llvm.addressofreturnaddress
; CHECK: [[TLS:%.*]] = call ptr @llvm.threadlocal.address.p0(ptr @__memlode_cursor)
; CHECK: store ptr {{%.*}}, ptr [[TLS]]
; CHECK-NEXT: resume
define ptr @make(i64 %n, i1 %c) personality ptr @__gxx_personality_v0 {
entry:
  br i1 %c, label %new, label %end
new:
  %fresh = invoke ptr @_Znwm(i64 %n) to label %end unwind label %pad
end:
  %r = phi ptr [ null, %entry ], [ %fresh, %new ]
  ret ptr %r
pad:
  %e = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %e
}
