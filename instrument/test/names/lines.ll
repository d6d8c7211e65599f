; An access without a line borrows one and says so: from what it computes with, else from its neighbour, else from its
; function.
; RUN: %names-opt %s 2>&1 | %FileCheck %s

; CHECK: own: lines.c:2:3 read 4
define i32 @own(ptr %p) !dbg !4 {
  %v = load i32, ptr %p, !dbg !8
  ret i32 %v
}
; CHECK: user: lines.c:5:7~ read 4
define i32 @user(ptr %p) !dbg !5 {
  %v = load i32, ptr %p
  %w = add i32 %v, 1, !dbg !9
  ret i32 %w
}
; What is put together without a line is used on one; where the pointer was made says nothing.
; CHECK: users: lines.c:24:7~ read 4
define i32 @users() !dbg !12 {
  %p = call ptr @make(), !dbg !13
  %v = load i32, ptr %p
  %pair = insertelement <2 x i32> zeroinitializer, i32 %v, i32 0
  %both = shufflevector <2 x i32> %pair, <2 x i32> poison, <2 x i32> zeroinitializer
  %w = add <2 x i32> %both, splat (i32 1), !dbg !14
  %r = extractelement <2 x i32> %w, i32 1, !dbg !14
  ret i32 %r, !dbg !14
}
; CHECK: neighbour: lines.c:8:1~ write 4
define void @neighbour(ptr %p) !dbg !6 {
  call void @g(), !dbg !10
  store i32 0, ptr %p, !dbg !11
  ret void
}
; CHECK: bare: lines.c:20:0~ write 4
define void @bare(ptr %p) !dbg !7 {
  store i32 0, ptr %p
  ret void
}
; CHECK: none: - write 4
define void @none(ptr %p) {
  store i32 0, ptr %p
  ret void
}
declare void @g()
declare ptr @make()

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!1}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, emissionKind: FullDebug)
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = !DIFile(filename: "lines.c", directory: "/")
!3 = !DISubroutineType(types: !{})
!4 = distinct !DISubprogram(name: "own", file: !2, line: 1, type: !3, scopeLine: 1, unit: !0, spFlags: DISPFlagDefinition)
!5 = distinct !DISubprogram(name: "user", file: !2, line: 4, type: !3, scopeLine: 4, unit: !0, spFlags: DISPFlagDefinition)
!6 = distinct !DISubprogram(name: "neighbour", file: !2, line: 7, type: !3, scopeLine: 7, unit: !0, spFlags: DISPFlagDefinition)
!7 = distinct !DISubprogram(name: "bare", file: !2, line: 19, type: !3, scopeLine: 20, unit: !0, spFlags: DISPFlagDefinition)
!8 = !DILocation(line: 2, column: 3, scope: !4)
!9 = !DILocation(line: 5, column: 7, scope: !5)
!10 = !DILocation(line: 8, column: 1, scope: !6)
!11 = !DILocation(line: 0, column: 0, scope: !6)
!12 = distinct !DISubprogram(name: "users", file: !2, line: 21, type: !3, scopeLine: 21, unit: !0, spFlags: DISPFlagDefinition)
!13 = !DILocation(line: 22, column: 5, scope: !12)
!14 = !DILocation(line: 24, column: 7, scope: !12)
