; ModuleID = 'FIRModule'
source_filename = "FIRModule"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%_QM__fortran_type_infoTcomponent = type { { ptr, i64, i32, i8, i8, i8, i8 }, i8, i8, i8, i8, [4 x i8], i64, %_QM__fortran_type_infoTvalue, { ptr, i64, i32, i8, i8, i8, i8, ptr, [1 x i64] }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, { ptr, i64, i32, i8, i8, i8, i8, [2 x [3 x i64]], ptr, [1 x i64] }, %_QM__fortran_builtinsT__builtin_c_ptr }
%_QM__fortran_type_infoTvalue = type { i8, [7 x i8], i64 }
%_QM__fortran_builtinsT__builtin_c_ptr = type { i64 }
%_QM__fortran_type_infoTderivedtype = type { { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, { ptr, i64, i32, i8, i8, i8, i8 }, i64, { ptr, i64, i32, i8, i8, i8, i8, ptr, [1 x i64] }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]] }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]] }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] }, i32, i8, i8, i8, i8, i8, [3 x i8] }
%_QMgridsTcell = type { double, i32 }

$_QMgridsEXnXheat = comdat any

$_QMgridsEXnXkind = comdat any

$_QMgridsEXnXcell = comdat any

$_QMgridsEXcXcell = comdat any

$_QMgridsEXdtXcell = comdat any

@_QMgridsEXnXheat = linkonce_odr constant [4 x i8] c"heat", comdat
@_QMgridsEXnXkind = linkonce_odr constant [4 x i8] c"kind", comdat
@_QMgridsEXnXcell = linkonce_odr constant [4 x i8] c"cell", comdat
@_QMgridsEcells = local_unnamed_addr global { ptr, i64, i32, i8, i8, i8, i8, [2 x [3 x i64]], ptr, [1 x i64] } { ptr null, i64 16, i32 20240719, i8 2, i8 42, i8 2, i8 1, [2 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 16], [3 x i64] [i64 1, i64 0, i64 0]], ptr @_QMgridsEXdtXcell, [1 x i64] zeroinitializer }, !dbg !0
@_QMgridsErows = local_unnamed_addr global { ptr, i64, i32, i8, i8, i8, i8, [2 x [3 x i64]] } { ptr null, i64 8, i32 20240719, i8 2, i8 28, i8 2, i8 0, [2 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 8], [3 x i64] [i64 1, i64 0, i64 0]] }, !dbg !6
@_QMgridsEXcXcell = linkonce_odr constant [2 x %_QM__fortran_type_infoTcomponent] [%_QM__fortran_type_infoTcomponent { { ptr, i64, i32, i8, i8, i8, i8 } { ptr @_QMgridsEXnXheat, i64 4, i32 20240719, i8 0, i8 40, i8 1, i8 0 }, i8 1, i8 2, i8 8, i8 0, [4 x i8] undef, i64 0, %_QM__fortran_type_infoTvalue { i8 1, [7 x i8] undef, i64 0 }, { ptr, i64, i32, i8, i8, i8, i8, ptr, [1 x i64] } { ptr null, i64 440, i32 20240719, i8 0, i8 42, i8 1, i8 1, ptr null, [1 x i64] zeroinitializer }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] } { ptr null, i64 16, i32 20240719, i8 1, i8 42, i8 1, i8 1, [1 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 16]], ptr null, [1 x i64] zeroinitializer }, { ptr, i64, i32, i8, i8, i8, i8, [2 x [3 x i64]], ptr, [1 x i64] } { ptr null, i64 16, i32 20240719, i8 2, i8 42, i8 1, i8 1, [2 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 16], [3 x i64] [i64 1, i64 0, i64 0]], ptr null, [1 x i64] zeroinitializer }, %_QM__fortran_builtinsT__builtin_c_ptr zeroinitializer }, %_QM__fortran_type_infoTcomponent { { ptr, i64, i32, i8, i8, i8, i8 } { ptr @_QMgridsEXnXkind, i64 4, i32 20240719, i8 0, i8 40, i8 1, i8 0 }, i8 1, i8 0, i8 4, i8 0, [4 x i8] undef, i64 8, %_QM__fortran_type_infoTvalue { i8 1, [7 x i8] undef, i64 0 }, { ptr, i64, i32, i8, i8, i8, i8, ptr, [1 x i64] } { ptr null, i64 440, i32 20240719, i8 0, i8 42, i8 1, i8 1, ptr null, [1 x i64] zeroinitializer }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] } { ptr null, i64 16, i32 20240719, i8 1, i8 42, i8 1, i8 1, [1 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 16]], ptr null, [1 x i64] zeroinitializer }, { ptr, i64, i32, i8, i8, i8, i8, [2 x [3 x i64]], ptr, [1 x i64] } { ptr null, i64 16, i32 20240719, i8 2, i8 42, i8 1, i8 1, [2 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 16], [3 x i64] [i64 1, i64 0, i64 0]], ptr null, [1 x i64] zeroinitializer }, %_QM__fortran_builtinsT__builtin_c_ptr zeroinitializer }], comdat
@_QMgridsEXdtXcell = linkonce_odr constant %_QM__fortran_type_infoTderivedtype { { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] } { ptr null, i64 32, i32 20240719, i8 1, i8 42, i8 1, i8 1, [1 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 32]], ptr null, [1 x i64] zeroinitializer }, { ptr, i64, i32, i8, i8, i8, i8 } { ptr @_QMgridsEXnXcell, i64 4, i32 20240719, i8 0, i8 40, i8 1, i8 0 }, i64 16, { ptr, i64, i32, i8, i8, i8, i8, ptr, [1 x i64] } { ptr null, i64 440, i32 20240719, i8 0, i8 42, i8 1, i8 1, ptr null, [1 x i64] zeroinitializer }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]] } { ptr null, i64 8, i32 20240719, i8 1, i8 10, i8 1, i8 0, [1 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 8]] }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]] } { ptr null, i64 1, i32 20240719, i8 1, i8 7, i8 1, i8 0, [1 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 1]] }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] } { ptr @_QMgridsEXcXcell, i64 256, i32 20240719, i8 1, i8 42, i8 1, i8 1, [1 x [3 x i64]] [[3 x i64] [i64 0, i64 2, i64 256]], ptr null, [1 x i64] zeroinitializer }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] } { ptr null, i64 40, i32 20240719, i8 1, i8 42, i8 1, i8 1, [1 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 40]], ptr null, [1 x i64] zeroinitializer }, { ptr, i64, i32, i8, i8, i8, i8, [1 x [3 x i64]], ptr, [1 x i64] } { ptr null, i64 16, i32 20240719, i8 1, i8 42, i8 1, i8 1, [1 x [3 x i64]] [[3 x i64] [i64 1, i64 0, i64 16]], ptr null, [1 x i64] zeroinitializer }, i32 0, i8 0, i8 1, i8 1, i8 1, i8 1, [3 x i8] undef }, comdat

; Function Attrs: nofree norecurse nosync nounwind memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none)
define double @_QMgridsPhot(ptr noalias readonly captures(none) %0, ptr noalias readonly captures(none) %1, ptr noalias readonly captures(none) %2, ptr noalias readonly captures(none) %3) local_unnamed_addr #0 !dbg !23 {
    #dbg_declare(ptr %2, !34, !DIExpression(), !35)
    #dbg_declare(ptr %3, !36, !DIExpression(), !35)
    #dbg_declare(ptr %0, !37, !DIExpression(), !35)
  %5 = load i32, ptr %2, align 4, !dbg !38, !tbaa !39
    #dbg_value(i64 poison, !45, !DIExpression(), !38)
    #dbg_declare(ptr %1, !47, !DIExpression(), !35)
  %6 = load i32, ptr %3, align 4, !dbg !51, !tbaa !52
  %7 = sext i32 %6 to i64, !dbg !51
  %8 = add nsw i64 %7, -1, !dbg !51
  %9 = getelementptr i8, ptr %0, i64 40, !dbg !51
  %10 = load i64, ptr %9, align 8, !dbg !51, !tbaa !54
  %11 = mul nsw i64 %8, %10, !dbg !51
  %12 = load ptr, ptr %0, align 8, !dbg !51, !tbaa !54
  %13 = getelementptr i8, ptr %12, i64 %11, !dbg !51
  %14 = load double, ptr %13, align 8, !dbg !51, !tbaa !56
    #dbg_value(double %14, !58, !DIExpression(), !59)
  %15 = getelementptr double, ptr %1, i64 %8, !dbg !60
  %16 = load double, ptr %15, align 8, !dbg !60, !tbaa !61
  %17 = fadd contract double %14, %16, !dbg !60
    #dbg_value(double %17, !58, !DIExpression(), !59)
  %18 = icmp sgt i32 %5, 0, !dbg !63
  br i1 %18, label %.lr.ph, label %._crit_edge, !dbg !63

.lr.ph:                                           ; preds = %4
  %.sroa.0.0.copyload = load ptr, ptr @_QMgridsEcells, align 16, !tbaa !54
  %.sroa.28.0.copyload = load i64, ptr getelementptr inbounds nuw (i8, ptr @_QMgridsEcells, i64 24), align 8, !tbaa !54
  %.sroa.3.0.copyload = load i64, ptr getelementptr inbounds nuw (i8, ptr @_QMgridsEcells, i64 32), align 16, !tbaa !54
  %.sroa.5.0.copyload = load i64, ptr getelementptr inbounds nuw (i8, ptr @_QMgridsEcells, i64 48), align 16, !tbaa !54
  %19 = sub nsw i64 %7, %.sroa.5.0.copyload
  %20 = mul nsw i64 %19, %.sroa.3.0.copyload
  %21 = getelementptr %_QMgridsTcell, ptr %.sroa.0.0.copyload, i64 %20
  %.sroa.018.0.copyload = load ptr, ptr @_QMgridsErows, align 16, !tbaa !54
  %.sroa.220.0.copyload = load i64, ptr getelementptr inbounds nuw (i8, ptr @_QMgridsErows, i64 24), align 8, !tbaa !54
  %.sroa.321.0.copyload = load i64, ptr getelementptr inbounds nuw (i8, ptr @_QMgridsErows, i64 32), align 16, !tbaa !54
  %.sroa.523.0.copyload = load i64, ptr getelementptr inbounds nuw (i8, ptr @_QMgridsErows, i64 48), align 16, !tbaa !54
  %22 = sub nsw i64 %7, %.sroa.523.0.copyload
  %23 = mul nsw i64 %22, %.sroa.321.0.copyload
  %24 = getelementptr double, ptr %.sroa.018.0.copyload, i64 %23
  %narrow = add nuw i32 %5, 1, !dbg !63
  %25 = zext i32 %narrow to i64, !dbg !63
  br label %26, !dbg !63

26:                                               ; preds = %.lr.ph, %26
  %indvars.iv = phi i64 [ 1, %.lr.ph ], [ %indvars.iv.next, %26 ]
  %.027 = phi double [ %17, %.lr.ph ], [ %38, %26 ]
    #dbg_value(double %.027, !58, !DIExpression(), !59)
    #dbg_value(i64 %indvars.iv, !64, !DIExpression(), !59)
  %27 = sub nsw i64 %indvars.iv, %.sroa.28.0.copyload, !dbg !65
  %28 = getelementptr %_QMgridsTcell, ptr %21, i64 %27, !dbg !65
  %29 = load double, ptr %28, align 8, !dbg !65, !tbaa !66
  %30 = fadd contract double %.027, %29, !dbg !65
    #dbg_value(double %30, !58, !DIExpression(), !59)
  %31 = getelementptr i8, ptr %28, i64 8, !dbg !69
  %32 = load i32, ptr %31, align 8, !dbg !69, !tbaa !66
  %33 = sitofp i32 %32 to double, !dbg !69
  %34 = fadd contract double %30, %33, !dbg !69
    #dbg_value(double %34, !58, !DIExpression(), !59)
  %35 = sub nsw i64 %indvars.iv, %.sroa.220.0.copyload, !dbg !70
  %36 = getelementptr double, ptr %24, i64 %35, !dbg !70
  %37 = load double, ptr %36, align 8, !dbg !70, !tbaa !71
  %38 = fadd contract double %34, %37, !dbg !70
    #dbg_value(double %38, !58, !DIExpression(), !59)
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1, !dbg !70
  %exitcond.not = icmp eq i64 %indvars.iv.next, %25, !dbg !63
  br i1 %exitcond.not, label %._crit_edge, label %26, !dbg !63

._crit_edge:                                      ; preds = %26, %4
  %.0.lcssa = phi double [ %17, %4 ], [ %38, %26 ], !dbg !59
    #dbg_value(i32 poison, !64, !DIExpression(), !59)
  ret double %.0.lcssa, !dbg !73
}

attributes #0 = { nofree norecurse nosync nounwind memory(read, inaccessiblemem: none, target_mem0: none, target_mem1: none) "target-cpu"="x86-64" }

!llvm.dbg.cu = !{!4}
!llvm.ident = !{!19}
!llvm.module.flags = !{!20, !21, !22}

!0 = !DIGlobalVariableExpression(var: !1, expr: !DIExpression())
!1 = distinct !DIGlobalVariable(name: "cells", linkageName: "_QMgridsEcells", scope: !2, file: !3, line: 9, type: !13, isLocal: false, isDefinition: true)
!2 = !DIModule(scope: !4, name: "grids", file: !3, line: 11)
!3 = !DIFile(filename: "grids.f90", directory: "/src")
!4 = distinct !DICompileUnit(language: DW_LANG_Fortran95, file: !3, producer: "Debian flang version 22.1.8", isOptimized: true, runtimeVersion: 0, emissionKind: FullDebug, globals: !5)
!5 = !{!0, !6}
!6 = !DIGlobalVariableExpression(var: !7, expr: !DIExpression())
!7 = distinct !DIGlobalVariable(name: "rows", linkageName: "_QMgridsErows", scope: !2, file: !3, line: 10, type: !8, isLocal: false, isDefinition: true)
!8 = !DICompositeType(tag: DW_TAG_array_type, baseType: !9, elements: !10, dataLocation: !DIExpression(DW_OP_push_object_address, DW_OP_deref), allocated: !DIExpression(DW_OP_push_object_address, DW_OP_deref, DW_OP_lit0, DW_OP_ne))
!9 = !DIBasicType(name: "real(kind=8)", size: 64, encoding: DW_ATE_float)
!10 = !{!11, !12}
!11 = !DISubrange(count: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 32, DW_OP_deref), lowerBound: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 24, DW_OP_deref), stride: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 40, DW_OP_deref))
!12 = !DISubrange(count: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 56, DW_OP_deref), lowerBound: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 48, DW_OP_deref), stride: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 64, DW_OP_deref))
!13 = !DICompositeType(tag: DW_TAG_array_type, baseType: !14, elements: !10, dataLocation: !DIExpression(DW_OP_push_object_address, DW_OP_deref), allocated: !DIExpression(DW_OP_push_object_address, DW_OP_deref, DW_OP_lit0, DW_OP_ne))
!14 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "cell", scope: !2, file: !3, line: 5, size: 96, elements: !15)
!15 = !{!16, !17}
!16 = !DIDerivedType(tag: DW_TAG_member, name: "heat", baseType: !9, size: 64, align: 64)
!17 = !DIDerivedType(tag: DW_TAG_member, name: "kind", baseType: !18, size: 32, align: 32, offset: 64)
!18 = !DIBasicType(name: "integer", size: 32, encoding: DW_ATE_signed)
!19 = !{!"Debian flang version 22.1.8"}
!20 = !{i32 2, !"Debug Info Version", i32 3}
!21 = !{i32 8, !"PIC Level", i32 2}
!22 = !{i32 7, !"PIE Level", i32 2}
!23 = distinct !DISubprogram(name: "hot", linkageName: "_QMgridsPhot", scope: !2, file: !3, line: 12, type: !24, scopeLine: 12, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !4, retainedNodes: !32)
!24 = !DISubroutineType(cc: DW_CC_normal, types: !25)
!25 = !{!9, !26, !29, !18, !18}
!26 = !DICompositeType(tag: DW_TAG_array_type, baseType: !9, elements: !27, dataLocation: !DIExpression(DW_OP_push_object_address, DW_OP_deref))
!27 = !{!28}
!28 = !DISubrange(count: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 32, DW_OP_deref), stride: !DIExpression(DW_OP_push_object_address, DW_OP_plus_uconst, 40, DW_OP_deref))
!29 = !DICompositeType(tag: DW_TAG_array_type, baseType: !9, elements: !30)
!30 = !{!31}
!31 = !DISubrange()
!32 = !{!33}
!33 = !DIImportedEntity(tag: DW_TAG_imported_module, scope: !23, entity: !2, file: !3, line: 1)
!34 = !DILocalVariable(name: "n", arg: 3, scope: !23, file: !3, line: 14, type: !18)
!35 = !DILocation(line: 12, column: 3, scope: !23)
!36 = !DILocalVariable(name: "r", arg: 4, scope: !23, file: !3, line: 14, type: !18)
!37 = !DILocalVariable(name: "u", arg: 1, scope: !23, file: !3, line: 13, type: !26)
!38 = !DILocation(line: 15, column: 28, scope: !23)
!39 = !{!40, !40, i64 0}
!40 = !{!"dummy arg data/_QMgridsFhotEn", !41, i64 0}
!41 = !{!"dummy arg data", !42, i64 0}
!42 = !{!"any data access", !43, i64 0}
!43 = !{!"any access", !44, i64 0}
!44 = !{!"Flang function root _QMgridsPhot"}
!45 = !DILocalVariable(name: "._QMgridsFhotEv1", scope: !23, file: !3, type: !46, flags: DIFlagArtificial)
!46 = !DIBasicType(name: "integer(kind=8)", size: 64, encoding: DW_ATE_signed)
!47 = !DILocalVariable(name: "v", arg: 2, scope: !23, file: !3, line: 15, type: !48)
!48 = !DICompositeType(tag: DW_TAG_array_type, baseType: !9, elements: !49)
!49 = !{!50}
!50 = !DISubrange(count: !45)
!51 = !DILocation(line: 17, column: 5, scope: !23)
!52 = !{!53, !53, i64 0}
!53 = !{!"dummy arg data/_QMgridsFhotEr", !41, i64 0}
!54 = !{!55, !55, i64 0}
!55 = !{!"descriptor member", !43, i64 0}
!56 = !{!57, !57, i64 0}
!57 = !{!"dummy arg data/_QMgridsFhotEu", !41, i64 0}
!58 = !DILocalVariable(name: "hot", scope: !23, file: !3, line: 12, type: !9)
!59 = !DILocation(line: 0, scope: !23)
!60 = !DILocation(line: 18, column: 5, scope: !23)
!61 = !{!62, !62, i64 0}
!62 = !{!"dummy arg data/_QMgridsFhotEv", !41, i64 0}
!63 = !DILocation(line: 19, column: 5, scope: !23)
!64 = !DILocalVariable(name: "i", scope: !23, file: !3, line: 16, type: !18)
!65 = !DILocation(line: 20, column: 7, scope: !23)
!66 = !{!67, !67, i64 0}
!67 = !{!"direct data/_QMgridsEcells", !68, i64 0}
!68 = !{!"direct data", !42, i64 0}
!69 = !DILocation(line: 21, column: 7, scope: !23)
!70 = !DILocation(line: 22, column: 7, scope: !23)
!71 = !{!72, !72, i64 0}
!72 = !{!"direct data/_QMgridsErows", !68, i64 0}
!73 = !DILocation(line: 24, column: 3, scope: !23)
