; Threads of Rust's library, which is compiled beforehand: their handle is the second word that their maker returns, and what
; joins them is given it. The last of a scope releases their number, eight bytes into what they share.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare i32 @rust_eh_personality(...)
declare { i64, ptr } @_RNvMs0_NtNtNtCsjrHSEGnQ3l9_3std3sys6thread4unixNtB5_6Thread3new(i64, ptr)
declare void @_RNvMs0_NtNtNtCsjrHSEGnQ3l9_3std3sys6thread4unixNtB5_6Thread4join(i64)
declare void @_RNvMNtNtCsjrHSEGnQ3l9_3std6thread6scopedNtB2_9ScopeData29decrement_num_running_threads(ptr, i1)

; CHECK-LABEL: define void @spawn(
; CHECK: %made = invoke { i64, ptr } @_RNvMs0_
; CHECK: [[HANDLE:%.*]] = extractvalue { i64, ptr } %made, 1
; CHECK: [[WORD:%.*]] = ptrtoint ptr [[HANDLE]] to i64
; CHECK: store i64 [[WORD]]
define void @spawn(ptr %main) personality ptr @rust_eh_personality {
  %made = invoke { i64, ptr } @_RNvMs0_NtNtNtCsjrHSEGnQ3l9_3std3sys6thread4unixNtB5_6Thread3new(i64 0, ptr %main)
          to label %on unwind label %pad
on:
  ret void
pad:
  %e = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %e
}

; CHECK-LABEL: define void @join(
; CHECK: call void @_RNvMs0_
; CHECK: store i64 %handle
define void @join(i64 %handle) {
  call void @_RNvMs0_NtNtNtCsjrHSEGnQ3l9_3std3sys6thread4unixNtB5_6Thread4join(i64 %handle)
  ret void
}

; CHECK-LABEL: define void @ends(
; CHECK: getelementptr i8, ptr %scope, i64 8
; CHECK: call void @_RNvMNtNt
define void @ends(ptr %scope) {
  call void @_RNvMNtNtCsjrHSEGnQ3l9_3std6thread6scopedNtB2_9ScopeData29decrement_num_running_threads(ptr %scope, i1 false)
  ret void
}
