; Debug info that no front end writes: types that contain or name themselves, sizes and offsets that do not fit, records
; and tags that make no sense. Whatever is said of them, the compiler lives.
; RUN: %names-opt %s 2>&1 | %FileCheck %s

; CHECK: cycle: hostile.c:1:1 read 4
; CHECK: nested: hostile.c:1:1 read 8
; CHECK: huge: hostile.c:1:1 read 8
; CHECK: empty: hostile.c:1:1 read 4
; CHECK: odd: hostile.c:1:1 read 4
; CHECK: loop: hostile.c:1:1 read 4
; CHECK: array: hostile.c:1:1 read 4

define i32 @cycle(ptr %p) !dbg !10 {
  #dbg_value(ptr %p, !20, !DIExpression(), !30)
  %v = load i32, ptr %p, !dbg !30
  ret i32 %v
}
define i64 @nested(ptr %p) !dbg !11 {
  #dbg_value(ptr %p, !21, !DIExpression(), !31)
  %q = getelementptr i8, ptr %p, i64 24
  %v = load i64, ptr %q, !dbg !31
  ret i64 %v
}
define i64 @huge(ptr %p, i64 %i) !dbg !12 {
  #dbg_value(ptr %p, !22, !DIExpression(), !32)
  %q = getelementptr [4611686018427387904 x i64], ptr %p, i64 %i, i64 -9223372036854775808
  %v = load i64, ptr %q, !dbg !32
  ret i64 %v
}
define i32 @empty(ptr %p) !dbg !13 {
  #dbg_value(!DIArgList(ptr %p, i32 0), !23, !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_LLVM_arg, 1, DW_OP_plus, DW_OP_stack_value), !33)
  %v = load i32, ptr %p, !dbg !33, !tbaa !50
  ret i32 %v
}
define i32 @odd(ptr %p) !dbg !14 {
  #dbg_value(ptr %p, !24, !DIExpression(DW_OP_deref, DW_OP_deref, DW_OP_plus_uconst, 18446744073709551615), !34)
  %v = load i32, ptr %p, !dbg !34
  ret i32 %v
}
define i32 @loop(ptr %p) !dbg !15 {
entry:
  br label %body
body:
  %a = phi ptr [ %a, %body ], [ %b, %other ], [ %p, %entry ]
  %q = getelementptr i8, ptr %a, i64 -8
  %v = load i32, ptr %q, !dbg !35
  %c = icmp eq i32 %v, 0
  br i1 %c, label %body, label %other
other:
  %b = phi ptr [ %a, %body ]
  br i1 %c, label %body, label %done
done:
  ret i32 %v
}

define i32 @array(ptr %p) !dbg !16 {
  #dbg_declare(ptr %p, !25, !DIExpression(), !36)
  %q = getelementptr i8, ptr %p, i64 8
  %v = load i32, ptr %q, !dbg !36
  ret i32 %v
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!1}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, emissionKind: FullDebug)
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = !DIFile(filename: "hostile.c", directory: "/")
!3 = !DISubroutineType(types: !{null, null})
!10 = distinct !DISubprogram(name: "cycle", file: !2, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!11 = distinct !DISubprogram(name: "nested", file: !2, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!12 = distinct !DISubprogram(name: "huge", file: !2, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!13 = distinct !DISubprogram(name: "empty", file: !2, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!14 = distinct !DISubprogram(name: "odd", file: !2, line: 1, unit: !0, spFlags: DISPFlagDefinition)
!15 = distinct !DISubprogram(name: "loop", file: !2, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)
!16 = distinct !DISubprogram(name: "array", file: !2, line: 1, type: !3, unit: !0, spFlags: DISPFlagDefinition)

!20 = !DILocalVariable(name: "a", scope: !10, file: !2, type: !40)
!21 = !DILocalVariable(name: "b", scope: !11, file: !2, type: !41)
!22 = !DILocalVariable(name: "c", scope: !12, file: !2, type: !42)
!23 = !DILocalVariable(name: "d", scope: !13, file: !2, type: !43)
!24 = !DILocalVariable(name: "", scope: !14, file: !2)
!25 = !DILocalVariable(name: "e", scope: !16, file: !2, type: !64)
!30 = !DILocation(line: 1, column: 1, scope: !10)
!31 = !DILocation(line: 1, column: 1, scope: !11)
!32 = !DILocation(line: 1, column: 1, scope: !12)
!33 = !DILocation(line: 1, column: 1, scope: !13)
!34 = !DILocation(line: 1, column: 1, scope: !14)
!35 = !DILocation(line: 1, column: 1, scope: !15)
!36 = !DILocation(line: 1, column: 1, scope: !16)

; A pointer to a type that stands for itself.
!40 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !44, size: 64)
!44 = distinct !DIDerivedType(tag: DW_TAG_typedef, name: "self", baseType: !44)
; A structure that holds itself, twice, in a place that it has no room for.
!41 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !45, size: 64)
!45 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "matryoshka", size: 256, elements: !{!46, !47, !48})
!46 = !DIDerivedType(tag: DW_TAG_inheritance, scope: !45, baseType: !45, size: 256)
!47 = !DIDerivedType(tag: DW_TAG_member, name: "inner", scope: !45, baseType: !45, size: 256, offset: 18446744073709551552)
!48 = !DIDerivedType(tag: DW_TAG_member, name: "more", scope: !45, baseType: !49, size: 256, offset: 64)
!49 = !DICompositeType(tag: DW_TAG_array_type, baseType: !45, elements: !{})
; An array of more bytes than there are.
!42 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !60, size: 64)
!60 = !DICompositeType(tag: DW_TAG_array_type, baseType: !61, size: 18446744073709551615, elements: !{!62})
!61 = !DIBasicType(name: "wide", size: 18446744073709551608, encoding: DW_ATE_signed)
!62 = !DISubrange(count: -1)
; A union without members, a class that is only declared, an enumeration of nothing.
!43 = distinct !DICompositeType(tag: DW_TAG_union_type, size: 1, elements: !{!63})
!63 = !DIDerivedType(tag: DW_TAG_member, name: "gone", baseType: null, offset: 7)
; An array of itself, and a descriptor of a structure that holds it; neither says its size.
!64 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "holder", size: 256, elements: !{!65, !66})
!65 = !DIDerivedType(tag: DW_TAG_member, name: "self", scope: !64, baseType: !67)
!66 = !DIDerivedType(tag: DW_TAG_member, name: "behind", scope: !64, baseType: !68, offset: 64)
!67 = distinct !DICompositeType(tag: DW_TAG_array_type, baseType: !67, elements: !{!69})
!68 = distinct !DICompositeType(tag: DW_TAG_array_type, baseType: !64, elements: !{}, dataLocation: !DIExpression(DW_OP_push_object_address, DW_OP_deref))
!69 = !DISubrange(count: 9223372036854775807)

!50 = !{!53, !53, i64 0}
!53 = !{!"int", !56, i64 0}
!56 = !{!"omnipotent char", !57, i64 0}
!57 = !{!"Simple C/C++ TBAA"}
