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
