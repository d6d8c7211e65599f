; An array of Fortran's that may move is known by a descriptor, in a variable or in a component: the elements are behind its first
; word, and flang reads it from a copy. A derived type has padding at its end that its size in debug info leaves out.
; RUN: %names-opt %s 2>&1 | %FileCheck %s
;
; Made by `flang-22 -g -O1 -mllvm -print-module-scope -mllvm -print-before=annotation2metadata` of what follows, without the tables
; that flang makes for its library.
;
; module shapes
;   type point
;     real(8) :: x
;     integer :: id
;   end type
;   type grid
;     integer :: rows
;     type(point), allocatable :: points(:)
;     integer :: last(3)
;   end type
; contains
;   subroutine fill(g, w, i)
;     type(grid) :: g
;     real(8) :: w(:,:)
;     integer :: i
;     g%rows = i
;     g%points(i)%id = g%last(i)
;     w(i, 2) = g%points(i)%x
;   end subroutine
; end module

; CHECK: write 4 g : grid . rows
; CHECK: read 4 g : grid . last[] (
; CHECK: read 8 g : grid . points.{data}
; CHECK: read 8 g : grid . points.{lower bound}
; CHECK: write 4 g.points : point . id
; CHECK: read 8 g.points : point . x
; CHECK: read 8 w : real(kind=8)[][] . {stride}
; CHECK: read 8 w : real(kind=8)[][] . {data}
; CHECK: write 8 w : real(kind=8) . - (

source_filename = "FIRModule"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%_QMshapesTgrid = type { i32, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, [3 x i32] }
%_QMshapesTpoint = type { double, i32 }

define void @_QMshapesPfill(ptr noalias %0, ptr noalias %1, ptr noalias %2) #0 !dbg !6 {
  %4 = alloca { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, align 8, !dbg !31
  %5 = alloca { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, align 8, !dbg !32
    #dbg_declare(ptr %0, !33, !DIExpression(), !34)
    #dbg_declare(ptr %2, !35, !DIExpression(), !34)
    #dbg_declare(ptr %1, !36, !DIExpression(), !34)
  %6 = load i32, ptr %2, align 4, !dbg !37, !tbaa !38
  %7 = getelementptr %_QMshapesTgrid, ptr %0, i32 0, i32 0, !dbg !37
  store i32 %6, ptr %7, align 4, !dbg !37, !tbaa !44
  %8 = load i32, ptr %2, align 4, !dbg !32, !tbaa !38
  %9 = sext i32 %8 to i64, !dbg !32
  %10 = getelementptr %_QMshapesTgrid, ptr %0, i32 0, i32 2, !dbg !32
  %11 = sub nsw i64 %9, 1, !dbg !32
  %12 = mul nsw i64 %11, 1, !dbg !32
  %13 = mul nsw i64 %12, 1, !dbg !32
  %14 = add nsw i64 %13, 0, !dbg !32
  %15 = getelementptr i32, ptr %10, i64 %14, !dbg !32
  %16 = load i32, ptr %15, align 4, !dbg !32, !tbaa !44
  %17 = getelementptr %_QMshapesTgrid, ptr %0, i32 0, i32 1, !dbg !32
  call void @llvm.memcpy.p0.p0.i32(ptr %5, ptr %17, i32 64, i1 false), !dbg !32, !tbaa !46
  %18 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, ptr %5, i32 0, i32 0, !dbg !32
  %19 = load ptr, ptr %18, align 8, !dbg !32, !tbaa !46
  %20 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, ptr %5, i32 0, i32 7, i64 0, i32 0, !dbg !32
  %21 = load i64, ptr %20, align 8, !dbg !32, !tbaa !46
  %22 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, ptr %5, i32 0, i32 7, i64 0, i32 1, !dbg !32
  %23 = load i64, ptr %22, align 8, !dbg !32, !tbaa !46
  %24 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, ptr %5, i32 0, i32 7, i64 0, i32 2, !dbg !32
  %25 = load i64, ptr %24, align 8, !dbg !32, !tbaa !46
  %26 = sub nsw i64 %9, %21, !dbg !32
  %27 = mul nsw i64 %26, 1, !dbg !32
  %28 = mul nsw i64 %27, 1, !dbg !32
  %29 = add nsw i64 %28, 0, !dbg !32
  %30 = mul nsw i64 1, %23, !dbg !32
  %31 = getelementptr %_QMshapesTpoint, ptr %19, i64 %29, !dbg !32
  %32 = getelementptr %_QMshapesTpoint, ptr %31, i32 0, i32 1, !dbg !32
  store i32 %16, ptr %32, align 4, !dbg !32, !tbaa !44
  call void @llvm.memcpy.p0.p0.i32(ptr %4, ptr %17, i32 64, i1 false), !dbg !31, !tbaa !46
  %33 = load i32, ptr %2, align 4, !dbg !31, !tbaa !38
  %34 = sext i32 %33 to i64, !dbg !31
  %35 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, ptr %4, i32 0, i32 0, !dbg !31
  %36 = load ptr, ptr %35, align 8, !dbg !31, !tbaa !46
  %37 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, ptr %4, i32 0, i32 7, i64 0, i32 0, !dbg !31
  %38 = load i64, ptr %37, align 8, !dbg !31, !tbaa !46
  %39 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, ptr %4, i32 0, i32 7, i64 0, i32 1, !dbg !31
  %40 = load i64, ptr %39, align 8, !dbg !31, !tbaa !46
  %41 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, ptr %4, i32 0, i32 7, i64 0, i32 2, !dbg !31
  %42 = load i64, ptr %41, align 8, !dbg !31, !tbaa !46
  %43 = sub nsw i64 %34, %38, !dbg !31
  %44 = mul nsw i64 %43, 1, !dbg !31
  %45 = mul nsw i64 %44, 1, !dbg !31
  %46 = add nsw i64 %45, 0, !dbg !31
  %47 = mul nsw i64 1, %40, !dbg !31
  %48 = getelementptr %_QMshapesTpoint, ptr %36, i64 %46, !dbg !31
  %49 = getelementptr %_QMshapesTpoint, ptr %48, i32 0, i32 0, !dbg !31
  %50 = load double, ptr %49, align 8, !dbg !31, !tbaa !44
  %51 = sub nsw i64 %34, 1, !dbg !31
  %52 = mul nsw i64 %51, 1, !dbg !31
  %53 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [2 x [3 x i64]] }, ptr %1, i32 0, i32 7, i32 0, i32 2, !dbg !31
  %54 = load i64, ptr %53, align 8, !dbg !31, !tbaa !46
  %55 = mul nsw i64 %52, %54, !dbg !31
  %56 = add nsw i64 %55, 0, !dbg !31
  %57 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [2 x [3 x i64]] }, ptr %1, i32 0, i32 7, i32 1, i32 2, !dbg !31
  %58 = load i64, ptr %57, align 8, !dbg !31, !tbaa !46
  %59 = mul nsw i64 1, %58, !dbg !31
  %60 = add nsw i64 %59, %56, !dbg !31
  %61 = getelementptr { ptr, i64, i32, i8, i8, i8, i8, [2 x [3 x i64]] }, ptr %1, i32 0, i32 0, !dbg !31
  %62 = load ptr, ptr %61, align 8, !dbg !31, !tbaa !46
  %63 = getelementptr i8, ptr %62, i64 %60, !dbg !31
  store double %50, ptr %63, align 8, !dbg !31, !tbaa !48
  ret void, !dbg !50
}

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i32(ptr noalias writeonly, ptr noalias readonly, i32, i1 immarg) #1

attributes #0 = { "target-cpu"="x86-64" }
attributes #1 = { nocallback nofree nounwind willreturn memory(argmem: readwrite) }

!llvm.dbg.cu = !{!0}
!llvm.ident = !{!2}
!llvm.module.flags = !{!3, !4, !5}

!0 = distinct !DICompileUnit(language: DW_LANG_Fortran95, file: !1, producer: "Debian flang version 22.1.8", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug)
!1 = !DIFile(filename: "small.f90", directory: "/")
!2 = !{!"Debian flang version 22.1.8"}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !{i32 8, !"PIC Level", i32 2}
!5 = !{i32 7, !"PIE Level", i32 2}
!6 = distinct !DISubprogram(name: "fill", linkageName: "_QMshapesPfill", scope: !7, file: !1, line: 12, type: !8, scopeLine: 12, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!7 = !DIModule(scope: !0, name: "shapes", file: !1, line: 11)
!8 = !DISubroutineType(cc: DW_CC_normal, types: !9)
!9 = !{null, !10, !27, !13}
!10 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "grid", scope: !0, file: !1, line: 6, size: 672, elements: !11)
!11 = !{!12, !14, !23}
!12 = !DIDerivedType(tag: DW_TAG_member, name: "rows", baseType: !13, size: 32, align: 32)
!13 = !DIBasicType(name: "integer", size: 32, encoding: DW_ATE_signed)
!14 = !DIDerivedType(tag: DW_TAG_member, name: "points", baseType: !15, size: 512, align: 64, offset: 64)
!15 = !DICompositeType(tag: DW_TAG_array_type, baseType: !16, elements: !21, dataLocation: !DIExpression(DW_OP_push_object_address, DW_OP_deref), allocated: !DIExpression(DW_OP_push_object_address, DW_OP_deref, DW_OP_lit0, DW_OP_ne))
!16 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "point", scope: !0, file: !1, line: 2, size: 96, elements: !17)
!17 = !{!18, !20}
!18 = !DIDerivedType(tag: DW_TAG_member, name: "x", baseType: !19, size: 64, align: 64)
!19 = !DIBasicType(name: "real(kind=8)", size: 64, encoding: DW_ATE_float)
!20 = !DIDerivedType(tag: DW_TAG_member, name: "id", baseType: !13, size: 32, align: 32, offset: 64)
!21 = !{!22}
!22 = !DISubrange(count: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 32, DW_OP_deref), lowerBound: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 24, DW_OP_deref), stride: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 40, DW_OP_deref))
!23 = !DIDerivedType(tag: DW_TAG_member, name: "last", baseType: !24, size: 96, align: 32, offset: 576)
!24 = !DICompositeType(tag: DW_TAG_array_type, baseType: !13, elements: !25)
!25 = !{!26}
!26 = !DISubrange(count: 3)
!27 = !DICompositeType(tag: DW_TAG_array_type, baseType: !19, elements: !28, dataLocation: !DIExpression(DW_OP_push_object_address, DW_OP_deref))
!28 = !{!29, !30}
!29 = !DISubrange(count: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 32, DW_OP_deref), stride: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 40, DW_OP_deref))
!30 = !DISubrange(count: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 56, DW_OP_deref), stride: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 64, DW_OP_deref))
!31 = !DILocation(line: 18, column: 5, scope: !6)
!32 = !DILocation(line: 17, column: 5, scope: !6)
!33 = !DILocalVariable(name: "g", arg: 1, scope: !6, file: !1, line: 13, type: !10)
!34 = !DILocation(line: 12, column: 3, scope: !6)
!35 = !DILocalVariable(name: "i", arg: 3, scope: !6, file: !1, line: 15, type: !13)
!36 = !DILocalVariable(name: "w", arg: 2, scope: !6, file: !1, line: 14, type: !27)
!37 = !DILocation(line: 16, column: 5, scope: !6)
!38 = !{!39, !39, i64 0}
!39 = !{!"dummy arg data/_QMshapesFfillEi", !40, i64 0}
!40 = !{!"dummy arg data", !41, i64 0}
!41 = !{!"any data access", !42, i64 0}
!42 = !{!"any access", !43, i64 0}
!43 = !{!"Flang function root _QMshapesPfill"}
!44 = !{!45, !45, i64 0}
!45 = !{!"dummy arg data/_QMshapesFfillEg", !40, i64 0}
!46 = !{!47, !47, i64 0}
!47 = !{!"descriptor member", !42, i64 0}
!48 = !{!49, !49, i64 0}
!49 = !{!"dummy arg data/_QMshapesFfillEw", !40, i64 0}
!50 = !DILocation(line: 19, column: 3, scope: !6)
