; Two calls of one function with nothing recorded between them: each has a segment of its own, so that a reader can
; tell at which line memory was asked for. None is made for functions that allocate nothing.
; RUN: %opt -passes=memlode -S %s | %FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare ptr @get(i64)
declare noalias ptr @malloc(i64)
declare i32 @putchar(i32)

; CHECK: @memlode.anchors.leaf = private constant [1 x
; CHECK: @memlode.anchors.wrapper = private constant [2 x
; The entry, one for each call, the exit.
; CHECK: @memlode.anchors.twice = private constant [4 x
; CHECK: @memlode.anchors.through_wrapper = private constant [4 x
; CHECK: @memlode.anchors.once = private constant [2 x
; CHECK: @memlode.anchors.one_each = private constant [2 x
; CHECK: @memlode.anchors.frugal = private constant [2 x
; In a loop, a call comes behind itself: it is told apart. But it may enter code that nobody records, and has one to
; be counted by.
; CHECK: @memlode.anchors.around = private constant [3 x
; CHECK: @memlode.anchors.either = private constant [4 x

define internal void @leaf(ptr %p) noinline {
  store i32 1, ptr %p
  ret void
}

define internal ptr @wrapper(i64 %n) noinline {
  %p = call ptr @malloc(i64 %n)
  ret ptr %p
}

; CHECK-LABEL: define void @twice(
; CHECK: store ptr @memlode.anchors.twice,
; CHECK: store ptr getelementptr inbounds ({{.*}} @memlode.anchors.twice, i64 {{(0, i64 2|16)}}),
; CHECK: call ptr @get(
; CHECK: store ptr getelementptr inbounds ({{.*}} @memlode.anchors.twice, i64 {{(0, i64 3|24)}}),
; CHECK: call ptr @get(
; CHECK: store ptr getelementptr inbounds ({{.*}} @memlode.anchors.twice, i64 {{(0, i64 1|8)}}),
define void @twice() !dbg !4 {
  %a = call ptr @get(i64 1), !dbg !10
  %b = call ptr @get(i64 2), !dbg !11
  ret void
}

define void @through_wrapper() !dbg !5 {
  %a = call ptr @wrapper(i64 1), !dbg !12
  %b = call ptr @wrapper(i64 2), !dbg !13
  ret void
}

define void @once() !dbg !6 {
  %a = call ptr @get(i64 1), !dbg !14
  ret void
}

define void @one_each() !dbg !7 {
  %a = call ptr @get(i64 1), !dbg !15
  %b = call ptr @wrapper(i64 2), !dbg !16
  %c = call i32 @putchar(i32 46), !dbg !15
  %d = call i32 @putchar(i32 46), !dbg !16
  ret void
}

define void @frugal(ptr %p) !dbg !8 {
  call void @leaf(ptr %p), !dbg !17
  call void @leaf(ptr %p), !dbg !18
  ret void
}

define void @around(i64 %n) !dbg !9 {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a = call ptr @get(i64 %i), !dbg !19
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @either(i1 %which) !dbg !20 {
  br i1 %which, label %left, label %right
left:
  %a = call ptr @get(i64 1), !dbg !21
  br label %done
right:
  %b = call ptr @get(i64 2), !dbg !22
  br label %done
done:
  ret void
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "calls.c", directory: "/src")
!2 = !DISubroutineType(types: !{null})
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "twice", scope: !1, file: !1, line: 1, type: !2, spFlags: DISPFlagDefinition, unit: !0)
!5 = distinct !DISubprogram(name: "through_wrapper", scope: !1, file: !1, line: 5, type: !2, spFlags: DISPFlagDefinition, unit: !0)
!6 = distinct !DISubprogram(name: "once", scope: !1, file: !1, line: 9, type: !2, spFlags: DISPFlagDefinition, unit: !0)
!7 = distinct !DISubprogram(name: "one_each", scope: !1, file: !1, line: 12, type: !2, spFlags: DISPFlagDefinition, unit: !0)
!8 = distinct !DISubprogram(name: "frugal", scope: !1, file: !1, line: 18, type: !2, spFlags: DISPFlagDefinition, unit: !0)
!9 = distinct !DISubprogram(name: "around", scope: !1, file: !1, line: 22, type: !2, spFlags: DISPFlagDefinition, unit: !0)
!10 = !DILocation(line: 2, column: 1, scope: !4)
!11 = !DILocation(line: 3, column: 1, scope: !4)
!12 = !DILocation(line: 6, column: 1, scope: !5)
!13 = !DILocation(line: 7, column: 1, scope: !5)
!14 = !DILocation(line: 10, column: 1, scope: !6)
!15 = !DILocation(line: 13, column: 1, scope: !7)
!16 = !DILocation(line: 14, column: 1, scope: !7)
!17 = !DILocation(line: 19, column: 1, scope: !8)
!18 = !DILocation(line: 20, column: 1, scope: !8)
!19 = !DILocation(line: 24, column: 1, scope: !9)
!20 = distinct !DISubprogram(name: "either", scope: !1, file: !1, line: 30, type: !2, spFlags: DISPFlagDefinition, unit: !0)
!21 = !DILocation(line: 31, column: 1, scope: !20)
!22 = !DILocation(line: 32, column: 1, scope: !20)
