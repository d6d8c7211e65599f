; rustc without optimisation uses a variable's value from where it was computed: the spill for the debugger names it. What
; tells the variants of an enum apart has a name of its own, and fields of several variants at one place are all given.
; RUN: %names-opt %s 2>&1 | %FileCheck %s
;
; Made by `rustc --emit=llvm-ir -Cdebuginfo=2 -Coverflow-checks=off -Ccodegen-units=1 -Cpanic=abort` (1.95) of
;
;   #![crate_type = "rlib"]
;   #![no_std]
;   pub struct Order { pub id: u64, pub price: u32, pub side: Side }
;   pub enum Side { Buy { limit: u32 }, Sell(u32), Cancel }
;   pub fn price(order: &Order) -> u32 { let found = order; found.price }
;   pub fn limit(order: &Order) -> u32 { match order.side { Side::Buy { limit } => limit, _ => 0 } }
;   pub fn first(orders: &[Order]) -> u64 { let part = orders; if part.len() > 0 { part[0].id } else { 0 } }

; CHECK: first: {{.*}} write 8 orders : &[rust::Order] . data_ptr
; CHECK: first: {{.*}} read 8 orders.data_ptr : rust::Order . id
; CHECK: limit: {{.*}} read 4 order : rust::Order . side.{discriminant}
; CHECK: limit: {{.*}} read 4 order : rust::Order . side.Buy.limit|side.Sell.__0
; CHECK: price: {{.*}} read 4 order : rust::Order . price

; ModuleID = 'rust.cebe997107dec46e-cgu.0'
source_filename = "rust.cebe997107dec46e-cgu.0"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%Order = type { %Side, i64, i32, [1 x i32] }
%Side = type { i32, [1 x i32] }

@alloc_bd8bee06a7b89a590f3f665f148dfe98 = private unnamed_addr constant [8 x i8] c"rust.rs\00", align 1
@alloc_b962ba1537912df470aeda8708d02d4a = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_bd8bee06a7b89a590f3f665f148dfe98, [16 x i8] c"\07\00\00\00\00\00\00\00\0F\00\00\00P\00\00\00" }>, align 8

; Function Attrs: nounwind nonlazybind uwtable
define i64 @first(ptr align 8 %orders.0, i64 %orders.1) unnamed_addr #0 !dbg !7 {
start:
  %orders.dbg.spill = alloca [16 x i8], align 8
  %_0 = alloca [8 x i8], align 8
  store ptr %orders.0, ptr %orders.dbg.spill, align 8
  %0 = getelementptr inbounds i8, ptr %orders.dbg.spill, i64 8
  store i64 %orders.1, ptr %0, align 8
    #dbg_declare(ptr %orders.dbg.spill, !43, !DIExpression(), !46)
    #dbg_declare(ptr %orders.dbg.spill, !44, !DIExpression(), !47)
  %_2 = icmp ugt i64 %orders.1, 0, !dbg !48
  br i1 %_2, label %bb1, label %bb3, !dbg !48

bb3:                                              ; preds = %start
  store i64 0, ptr %_0, align 8, !dbg !49
  br label %bb4, !dbg !50

bb1:                                              ; preds = %start
  %_6 = icmp ult i64 0, %orders.1, !dbg !51
  br i1 %_6, label %bb2, label %panic, !dbg !51

bb4:                                              ; preds = %bb2, %bb3
  %1 = load i64, ptr %_0, align 8, !dbg !52
  ret i64 %1, !dbg !52

bb2:                                              ; preds = %bb1
  %2 = getelementptr inbounds nuw %Order, ptr %orders.0, i64 0, !dbg !51
  %3 = getelementptr inbounds i8, ptr %2, i64 8, !dbg !51
  %4 = load i64, ptr %3, align 8, !dbg !51
  store i64 %4, ptr %_0, align 8, !dbg !51
  br label %bb4, !dbg !50

panic:                                            ; preds = %bb1
; call core::panicking::panic_bounds_check
  call void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64 0, i64 %orders.1, ptr align 8 @alloc_b962ba1537912df470aeda8708d02d4a) #2, !dbg !51
  unreachable, !dbg !51
}

; Function Attrs: nounwind nonlazybind uwtable
define i32 @limit(ptr align 8 %order) unnamed_addr #0 !dbg !53 {
start:
  %limit.dbg.spill = alloca [4 x i8], align 4
  %order.dbg.spill = alloca [8 x i8], align 8
  %_0 = alloca [4 x i8], align 4
  store ptr %order, ptr %order.dbg.spill, align 8
    #dbg_declare(ptr %order.dbg.spill, !58, !DIExpression(), !61)
  %0 = load i32, ptr %order, align 8, !dbg !62
  %1 = getelementptr inbounds i8, ptr %order, i64 4, !dbg !62
  %2 = load i32, ptr %1, align 4, !dbg !62
  %_2 = zext i32 %0 to i64, !dbg !62
  %3 = icmp eq i64 %_2, 0, !dbg !63
  br i1 %3, label %bb2, label %bb1, !dbg !63

bb2:                                              ; preds = %start
  %4 = getelementptr inbounds i8, ptr %order, i64 4, !dbg !64
  %limit = load i32, ptr %4, align 4, !dbg !64
  store i32 %limit, ptr %limit.dbg.spill, align 4, !dbg !64
    #dbg_declare(ptr %limit.dbg.spill, !59, !DIExpression(), !65)
  store i32 %limit, ptr %_0, align 4, !dbg !66
  br label %bb3, !dbg !67

bb1:                                              ; preds = %start
  store i32 0, ptr %_0, align 4, !dbg !68
  br label %bb3, !dbg !68

bb3:                                              ; preds = %bb1, %bb2
  %5 = load i32, ptr %_0, align 4, !dbg !69
  ret i32 %5, !dbg !69
}

; Function Attrs: nounwind nonlazybind uwtable
define i32 @price(ptr align 8 %order) unnamed_addr #0 !dbg !70 {
start:
  %order.dbg.spill = alloca [8 x i8], align 8
  store ptr %order, ptr %order.dbg.spill, align 8
    #dbg_declare(ptr %order.dbg.spill, !72, !DIExpression(), !75)
    #dbg_declare(ptr %order.dbg.spill, !73, !DIExpression(), !76)
  %0 = getelementptr inbounds i8, ptr %order, i64 16, !dbg !77
  %_0 = load i32, ptr %0, align 8, !dbg !77
  ret i32 %_0, !dbg !78
}

; core::panicking::panic_bounds_check
; Function Attrs: cold minsize noinline noreturn nounwind nonlazybind optsize uwtable
declare void @_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check(i64, i64, ptr align 8) unnamed_addr #1

attributes #0 = { nounwind nonlazybind uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #1 = { cold minsize noinline noreturn nounwind nonlazybind optsize uwtable "probe-stack"="inline-asm" "target-cpu"="x86-64" }
attributes #2 = { noinline noreturn nounwind }

!llvm.module.flags = !{!0, !1, !2, !3}
!llvm.ident = !{!4}
!llvm.dbg.cu = !{!5}

!0 = !{i32 8, !"PIC Level", i32 2}
!1 = !{i32 2, !"RtLibUseGOT", i32 1}
!2 = !{i32 7, !"Dwarf Version", i32 4}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !{!"rustc version 1.95.0 (59807616e 2026-04-14)"}
!5 = distinct !DICompileUnit(language: DW_LANG_Rust, file: !6, producer: "clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug, splitDebugInlining: false, nameTableKind: None)
!6 = !DIFile(filename: "rust.rs/@/rust.cebe997107dec46e-cgu.0", directory: "/src")
!7 = distinct !DISubprogram(name: "first", scope: !9, file: !8, line: 15, type: !10, scopeLine: 15, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !5, templateParams: !32, retainedNodes: !42)
!8 = !DIFile(filename: "rust.rs", directory: "/src", checksumkind: CSK_MD5, checksum: "d38606cb723980460674c8e7b3d08787")
!9 = !DINamespace(name: "rust", scope: null)
!10 = !DISubroutineType(types: !11)
!11 = !{!12, !13}
!12 = !DIBasicType(name: "u64", size: 64, encoding: DW_ATE_unsigned)
!13 = !DICompositeType(tag: DW_TAG_structure_type, name: "&[rust::Order]", file: !14, size: 128, align: 64, elements: !15, templateParams: !32, identifier: "2c54e2e6196a6d6f8bf253bc428c9e7e")
!14 = !DIFile(filename: "<unknown>", directory: "")
!15 = !{!16, !40}
!16 = !DIDerivedType(tag: DW_TAG_member, name: "data_ptr", scope: !13, file: !14, baseType: !17, size: 64, align: 64)
!17 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !18, size: 64, align: 64, dwarfAddressSpace: 0)
!18 = !DICompositeType(tag: DW_TAG_structure_type, name: "Order", scope: !9, file: !14, size: 192, align: 64, flags: DIFlagPublic, elements: !19, templateParams: !32, identifier: "ecb848d5faafbb735be3f4c9ef2fc8f8")
!19 = !{!20, !21, !23}
!20 = !DIDerivedType(tag: DW_TAG_member, name: "id", scope: !18, file: !14, baseType: !12, size: 64, align: 64, offset: 64, flags: DIFlagPublic)
!21 = !DIDerivedType(tag: DW_TAG_member, name: "price", scope: !18, file: !14, baseType: !22, size: 32, align: 32, offset: 128, flags: DIFlagPublic)
!22 = !DIBasicType(name: "u32", size: 32, encoding: DW_ATE_unsigned)
!23 = !DIDerivedType(tag: DW_TAG_member, name: "side", scope: !18, file: !14, baseType: !24, size: 64, align: 32, flags: DIFlagPublic)
!24 = !DICompositeType(tag: DW_TAG_structure_type, name: "Side", scope: !9, file: !14, size: 64, align: 32, flags: DIFlagPublic, elements: !25, templateParams: !32, identifier: "9c24dc9bfaad1e0899c7c858682463cf")
!25 = !{!26}
!26 = !DICompositeType(tag: DW_TAG_variant_part, scope: !24, file: !14, size: 64, align: 32, elements: !27, templateParams: !32, identifier: "3ea1fa607b4b939c747398fdf5c7133", discriminator: !39)
!27 = !{!28, !33, !37}
!28 = !DIDerivedType(tag: DW_TAG_member, name: "Buy", scope: !26, file: !14, baseType: !29, size: 64, align: 32, extraData: i32 0)
!29 = !DICompositeType(tag: DW_TAG_structure_type, name: "Buy", scope: !24, file: !14, size: 64, align: 32, flags: DIFlagPublic, elements: !30, templateParams: !32, identifier: "4d6059fca9b5ff3c2d87cd6cd7429b56")
!30 = !{!31}
!31 = !DIDerivedType(tag: DW_TAG_member, name: "limit", scope: !29, file: !14, baseType: !22, size: 32, align: 32, offset: 32, flags: DIFlagPublic)
!32 = !{}
!33 = !DIDerivedType(tag: DW_TAG_member, name: "Sell", scope: !26, file: !14, baseType: !34, size: 64, align: 32, extraData: i32 1)
!34 = !DICompositeType(tag: DW_TAG_structure_type, name: "Sell", scope: !24, file: !14, size: 64, align: 32, flags: DIFlagPublic, elements: !35, templateParams: !32, identifier: "3dc7e6ca28c862fd3f2aaec2ba387b36")
!35 = !{!36}
!36 = !DIDerivedType(tag: DW_TAG_member, name: "__0", scope: !34, file: !14, baseType: !22, size: 32, align: 32, offset: 32, flags: DIFlagPublic)
!37 = !DIDerivedType(tag: DW_TAG_member, name: "Cancel", scope: !26, file: !14, baseType: !38, size: 64, align: 32, extraData: i32 2)
!38 = !DICompositeType(tag: DW_TAG_structure_type, name: "Cancel", scope: !24, file: !14, size: 64, align: 32, flags: DIFlagPublic, elements: !32, identifier: "592d3bb5c8935b91756269918bd2b481")
!39 = !DIDerivedType(tag: DW_TAG_member, scope: !24, file: !14, baseType: !22, size: 32, align: 32, flags: DIFlagArtificial)
!40 = !DIDerivedType(tag: DW_TAG_member, name: "length", scope: !13, file: !14, baseType: !41, size: 64, align: 64, offset: 64)
!41 = !DIBasicType(name: "usize", size: 64, encoding: DW_ATE_unsigned)
!42 = !{!43, !44}
!43 = !DILocalVariable(name: "orders", arg: 1, scope: !7, file: !8, line: 15, type: !13)
!44 = !DILocalVariable(name: "part", scope: !45, file: !8, line: 15, type: !13, align: 64)
!45 = distinct !DILexicalBlock(scope: !7, file: !8, line: 15, column: 41)
!46 = !DILocation(line: 15, column: 14, scope: !7)
!47 = !DILocation(line: 15, column: 45, scope: !45)
!48 = !DILocation(line: 15, column: 63, scope: !45)
!49 = !DILocation(line: 15, column: 100, scope: !45)
!50 = !DILocation(line: 15, column: 60, scope: !45)
!51 = !DILocation(line: 15, column: 80, scope: !45)
!52 = !DILocation(line: 15, column: 105, scope: !7)
!53 = distinct !DISubprogram(name: "limit", scope: !9, file: !8, line: 10, type: !54, scopeLine: 10, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !5, templateParams: !32, retainedNodes: !57)
!54 = !DISubroutineType(types: !55)
!55 = !{!22, !56}
!56 = !DIDerivedType(tag: DW_TAG_pointer_type, name: "&rust::Order", baseType: !18, size: 64, align: 64, dwarfAddressSpace: 0)
!57 = !{!58, !59}
!58 = !DILocalVariable(name: "order", arg: 1, scope: !53, file: !8, line: 10, type: !56)
!59 = !DILocalVariable(name: "limit", scope: !60, file: !8, line: 11, type: !22, align: 32)
!60 = distinct !DILexicalBlock(scope: !53, file: !8, line: 11, column: 24)
!61 = !DILocation(line: 10, column: 14, scope: !53)
!62 = !DILocation(line: 11, column: 11, scope: !53)
!63 = !DILocation(line: 11, column: 5, scope: !53)
!64 = !DILocation(line: 11, column: 36, scope: !53)
!65 = !DILocation(line: 11, column: 36, scope: !60)
!66 = !DILocation(line: 11, column: 47, scope: !60)
!67 = !DILocation(line: 11, column: 51, scope: !53)
!68 = !DILocation(line: 11, column: 59, scope: !53)
!69 = !DILocation(line: 12, column: 2, scope: !53)
!70 = distinct !DISubprogram(name: "price", scope: !9, file: !8, line: 7, type: !54, scopeLine: 7, flags: DIFlagPrototyped, spFlags: DISPFlagDefinition, unit: !5, templateParams: !32, retainedNodes: !71)
!71 = !{!72, !73}
!72 = !DILocalVariable(name: "order", arg: 1, scope: !70, file: !8, line: 7, type: !56)
!73 = !DILocalVariable(name: "found", scope: !74, file: !8, line: 7, type: !56, align: 64)
!74 = distinct !DILexicalBlock(scope: !70, file: !8, line: 7, column: 38)
!75 = !DILocation(line: 7, column: 14, scope: !70)
!76 = !DILocation(line: 7, column: 42, scope: !74)
!77 = !DILocation(line: 7, column: 57, scope: !74)
!78 = !DILocation(line: 7, column: 70, scope: !70)
